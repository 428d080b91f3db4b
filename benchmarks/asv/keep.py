"""Makes the results of asv fit to be kept: without the path of this checkout, so that those of two checkouts compare,
and without the build of the kernel.

asv names the environment of `--python=same` by the path of Python. Here it gets the name `existing-py3.11`: run this
with the Python that asv used.
"""

import json
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def keep(path: Path) -> None:
    """Replace a file of asv by one that does not say where it was made."""
    content = json.loads(path.read_text())
    if path.name == "machine.json":
        content["os"] = content["os"].split()[0]
        path.write_text(json.dumps(content, indent=4) + "\n")
        return
    content["params"]["os"] = content["params"]["os"].split()[0]
    if not Path(content["python"]).is_absolute():
        path.write_text(json.dumps(content) + "\n")
        return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    content["python"] = content["params"]["python"] = version
    content["env_name"] = f"existing-py{version}"
    kept = path.with_name(f"{content['commit_hash'][:8]}-{content['env_name']}.json")
    kept.write_text(json.dumps(content) + "\n")
    path.unlink()


if __name__ == "__main__":
    for path in RESULTS.glob("*/*.json"):
        keep(path)
