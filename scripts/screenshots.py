"""Take the screenshots of the README: `python scripts/screenshots.py FOLDER`, on a machine with Chromium.

FOLDER is made; its path can be read in one of the pictures. The sample documents go in there, `qedge ui` is started,
and a headless browser opens the asset graph, the partitions of the collection, and one document's materialisation.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_QEDGE = [sys.executable, "-m", "qedge_dagster.cli"]
_DOCUMENT = "wardens%2Fwater.md"
_PAGES = {
    "asset-graph": ("locations/qedge_dagster.orchestration.location/asset-groups/{group}/lineage", "1800,560"),
    "partitions": ("assets/{key}/collection?view=partitions", "1400,760"),
    "partition": ("assets/{key}/extracted_documents?view=partitions&partition=" + _DOCUMENT, "1400,760"),
}
# Chromium asks for nothing but the page; time passes as fast as the page lets it.
_BROWSER = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--virtual-time-budget=20000",
]


def main(folder: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("neither chromium nor google-chrome is on the path")
    folder.mkdir(parents=True, exist_ok=True)
    database = str(folder / "hut.db")
    ingest = [*_QEDGE, "ingest", "--db", database, "--collection", "hut", "--source-id", "hut"]
    subprocess.run([*ingest, str(ROOT / "examples" / "docs")], check=True)
    with _ui(database) as url, tempfile.TemporaryDirectory() as profile:
        for name, (page, size) in _PAGES.items():
            target = ROOT / "docs" / "images" / f"{name}.png"
            address = url.rstrip("/") + "/" + page.format(group="hut", key="hut")
            command = [browser, *_BROWSER, f"--user-data-dir={profile}", f"--window-size={size}"]
            subprocess.run([*command, f"--screenshot={target}", address], check=True, capture_output=True)
            print(target.relative_to(ROOT), target.stat().st_size)


@contextmanager
def _ui(database: str) -> Generator[str, None, None]:
    with subprocess.Popen([*_QEDGE, "ui", "--db", database, "--json"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            answer = ""
            while not answer.rstrip().endswith("}"):
                line = process.stdout.readline()
                if not line:
                    sys.exit("qedge ui has ended")
                answer += line
            yield json.loads(answer)["url"]
        finally:
            process.send_signal(signal.SIGINT)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())
