"""The code of docs/recipes.md runs as it stands there, with tools that are installed."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas is not installed")

import pandas as pd

import rgld

PAGE = Path(__file__).parents[1] / "docs" / "recipes.md"
pytestmark = [
    pytest.mark.own_process,
    pytest.mark.skipif(not PAGE.exists(), reason="the tests run outside the repository"),
]


def blocks(title):
    """Return the code of a section: blocks that name a file, by its name, and the others under ""."""
    section = next(part for part in PAGE.read_text().split("\n## ") if part.startswith(title))
    found = {}
    for code in re.findall(r"```(?:python|sql)\n(.*?)```", section, re.DOTALL):
        named = re.match(r"(?:#|--) (\S+\.\w+)\n", code)
        found[named[1] if named else ""] = code
    return found


@pytest.fixture
def folder(tmp_path):
    """A folder with a model of payments, and new payments of which the last is strange."""
    rng = np.random.default_rng(0)
    payments = pd.DataFrame({"amount": rng.lognormal(3, 0.5, 2000), "city": rng.choice(["Bonn", "Rome"], 2000)})
    rgld.RGLD(random_state=0).fit(payments).save(tmp_path / "payments.rgld")
    new = pd.concat([payments[:50], pd.DataFrame({"amount": [9999.0], "city": ["Atlantis"]})], ignore_index=True)
    new.to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


def write(folder, files):
    for name, code in files.items():
        if name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(code)


def run(folder, *command, **environment):
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


READ = "import pandas as pd\nframe = pd.read_csv('new.csv')\n"


@pytest.mark.skipif(find_spec("pandera") is None, reason="pandera is not installed")
def test_pandera(folder):
    files = blocks("pandera")
    write(folder, files)
    done = run(folder, "-c", READ + files[""])
    assert done.returncode == 1, done.stderr
    assert re.search(r"1 strange rows: \{50: \[.*amount 9,999", done.stderr), done.stderr


@pytest.mark.skipif(find_spec("mlflow") is None, reason="MLflow is not installed")
def test_mlflow(folder):
    files = blocks("MLflow")
    write(folder, files)
    done = run(
        folder,
        "-c",
        READ + files[""] + "\nscores.to_json('scores.json')",
        MLFLOW_TRACKING_URI=f"sqlite:///{folder}/runs.db",
    )
    assert done.returncode == 0, done.stderr
    expected = rgld.load(folder / "payments.rgld").anomaly_score(pd.read_csv(folder / "new.csv"))
    np.testing.assert_allclose(pd.read_json(folder / "scores.json", typ="series"), expected, atol=1e-9)
    assert not [path for path in folder.rglob("*.pkl")], "no pickle of the detector"


DBT_PROJECT = {
    "dbt_project.yml": "name: shop\nprofile: shop\nversion: '1.0'\n",
    "profiles.yml": "shop: {target: dev, outputs: {dev: {type: duckdb, path: shop.duckdb}}}\n",
}


@pytest.mark.skipif(
    find_spec("dbt") is None or find_spec("dbt.adapters.duckdb") is None, reason="dbt-duckdb is not installed"
)
def test_dbt(folder):
    write(folder, {**DBT_PROJECT, **blocks("dbt")})
    (folder / "seeds").mkdir()
    (folder / "new.csv").rename(folder / "seeds" / "payments.csv")

    def dbt(*options):
        code = "from dbt.cli.main import cli; cli()"
        return run(folder, "-c", code, "--no-use-colors", *options, DBT_SEND_ANONYMOUS_USAGE_STATS="false")

    built = dbt("build", "--store-failures")
    assert built.returncode == 1 and "FAIL 1 usual_payments" in built.stdout, built.stdout
    shown = dbt("show", "--select", "usual_payments", "--quiet", "--output", "json")
    assert "Atlantis" in shown.stdout and "amount 9,999 is far above usual" in shown.stdout, shown.stdout
    usual = pd.read_csv(folder / "seeds" / "payments.csv")[:-1]
    usual.to_csv(folder / "seeds" / "payments.csv", index=False)
    passed = dbt("build")
    assert passed.returncode == 0 and "PASS usual_payments" in passed.stdout, passed.stdout


@pytest.mark.skipif(find_spec("great_expectations") is None, reason="Great Expectations is not installed")
def test_great_expectations(folder):
    done = run(folder, "-c", READ + blocks("Great Expectations")[""], GX_ANALYTICS_ENABLED="false")
    assert done.returncode == 1, done.stderr
    assert "1 strange rows: [[" in done.stderr and "amount 9,999" in done.stderr, done.stderr
