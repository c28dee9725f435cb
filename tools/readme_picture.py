"""Draws docs/recall.png, the picture in the README: a recall over the sample, as a notebook shows it.

    python tools/readme_picture.py [--browser chromium]

Needs a Chromium or Chrome on the machine, for the screenshot only.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

import memlab

ROOT = Path(__file__).resolve().parents[1]
QUERY = "when must the renewal of the wheel signing key be requested"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=2",
    "--window-size=900,680",
)


def main() -> None:
    """Build the sample, recall, and take the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", default=next(filter(None, map(shutil.which, BROWSERS)), None))
    browser = parser.parse_args().browser
    if browser is None:
        parser.error(f"no browser was found (looked for {', '.join(BROWSERS)}); name one with --browser")
    target = ROOT / "docs" / "recall.png"
    target.parent.mkdir(exist_ok=True)
    sample = memlab.sample()
    with tempfile.TemporaryDirectory() as folder, sample.build(Path(folder) / "sample.db", progress=True) as store:
        retriever = memlab.HybridRetriever(store)
        retriever.recall("warm up")  # so that the picture shows the time of a recall, not of loading the model
        recall = retriever.recall(QUERY, recency_boost=True, now=sample.now, limit=4)
        page = Path(folder) / "page.html"
        page.write_text(
            '<meta charset="utf-8"><body style="margin:12px;background:#ffffff;font:14px sans-serif">'
            + recall._repr_html_(),
            encoding="utf-8",
        )
        flags = [*FLAGS, f"--user-data-dir={folder}/profile", f"--screenshot={target}"]
        subprocess.run([browser, *flags, page.as_uri()], check=True, capture_output=True, timeout=120)
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
