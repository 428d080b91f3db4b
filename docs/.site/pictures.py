"""Makes the pictures of the documentation: pages in Chromium, and plots. The tables are generated or scikit-learn's.

python docs/.site/pictures.py
"""

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
from playwright.sync_api import Page, sync_playwright

mpl.use("agg")
DOCS = Path(__file__).parents[1]
OUT = DOCS / "pictures"
RGLD = str(Path(sys.executable).with_name("rgld"))
SIZE = {"width": 1200, "height": 900}


def rgld(folder: Path, *arguments: str) -> None:
    """Run a command quietly; `rgld check` may say 3."""
    subprocess.run([RGLD, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def pages(folder: Path) -> None:
    """Write the pages that are to be pictured, from the tables of `rgld demo` and of the tutorial."""
    for file in (DOCS / "tutorials").glob("*.csv"):
        shutil.copy(file, folder)
    rgld(folder, "demo", "shop")
    march = ("orders-march.csv", "--id", "Order", "--column", "Note=drop")
    rgld(folder, "report", *march, "--out", "orders.html")
    rgld(folder, "fit", *march, "--model", "march.rgld")
    lines = (folder / "shop" / "payments.csv").read_text(encoding="utf-8").splitlines()
    lines = [line.rsplit(",", 1)[0] for line in lines]  # without the column that tells which rows are strange
    (folder / "payments.csv").write_text("\n".join(lines), encoding="utf-8")
    rgld(folder, "fit", "payments.csv", "--id", "payment", "--model", "payments.rgld")
    rgld(folder, "check", "orders-april.csv", "--id", "Order", "--model", "march.rgld", "--report", "drift.html")


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run `rgld serve` and give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [RGLD, "serve", "--model", "payments.rgld", "--port", str(port), "--quiet"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait()


def shoot(page: Page, address: str, name: str) -> None:
    """Keep the first screen of a page."""
    page.goto(address)
    page.wait_for_timeout(800)
    page.screenshot(path=OUT / f"{name}.png")


def plots() -> None:
    """Draw the two plots of an explanation, of scikit-learn's table of wines."""
    import matplotlib.pyplot as plt
    from sklearn.datasets import load_wine

    from rgld import RGLD

    table = load_wine(as_frame=True).data
    detector = RGLD.plus(random_state=0).fit(table)
    explanation = detector.explain(table)
    row = int(detector.anomaly_score(table).argmax())
    for name, which in (("plot-row", row), ("plot-table", None)):
        figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
        explanation.plot(which, ax=ax)
        figure.savefig(OUT / f"{name}.png", dpi=110)
        plt.close(figure)


def main() -> None:
    """Make all pictures."""
    OUT.mkdir(exist_ok=True)
    plots()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        pages(folder)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme, names in (("light", ["orders", "drift"]), ("dark", ["orders"])):
            page = browser.new_context(viewport=SIZE, color_scheme=scheme).new_page()
            for which in names:
                shoot(page, f"file://{folder}/{which}.html", f"{which}-{scheme}")
        page = browser.new_context(viewport={"width": 400, "height": 800}).new_page()
        shoot(page, f"file://{folder}/orders.html", "orders-phone")
        page = browser.new_context(viewport=SIZE).new_page()
        with server(folder) as address:
            page.goto(address)
            page.set_input_files("input[type=file]", folder / "payments.csv")
            page.wait_for_timeout(3000)
            page.screenshot(path=OUT / "serve.png")
        page.set_viewport_size({"width": 1360, "height": 1100})
        shoot(page, f"file://{folder}/shop/report.html", "../report")
        browser.close()


if __name__ == "__main__":
    main()
