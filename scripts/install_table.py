"""Measures what each extra costs and writes the table of docs/install.md.

    python scripts/install_table.py

Every wheel is fetched once. Then each row is an empty virtual environment that is filled from those wheels alone,
without a package index, and measured: what was installed, how large it is, and how long a fresh interpreter imports it.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "install.md"
START, END = "<!-- measured by scripts/install_table.py -->", "<!-- end -->"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
REPEATS = 5

#: Extra → the modules whose import is measured. The empty name is the package without extras.
EXTRAS: dict[str, tuple[str, ...]] = {
    "": ("qedge_dagster", "qedge_dagster.pipeline", "dagster"),
    "onnx": ("onnxruntime",),
    "pdf": ("pdfminer.high_level",),
    "docx": ("docx2txt",),
    "ui": ("dagster_webserver.cli",),
    "fsspec": ("fsspec",),
    "llamaindex": ("llama_index.core",),
}

#: How packages without an SPDX expression say it.
SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT License, Apache License, Version 2.0": "MIT OR Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The MIT License (MIT)": "MIT",
}


@dataclass(frozen=True)
class Installed:
    """What one environment holds."""

    licences: dict[str, str]
    download_bytes: dict[str, int]
    installed_bytes: int
    imports: dict[str, tuple[float, int]]
    """Seconds and warnings of each module."""


def fetch_wheels(folder: Path) -> None:
    requirement = f"{ROOT}[{','.join(filter(None, EXTRAS))}]"
    subprocess.run(
        [
            *PIP,
            "wheel",
            "--quiet",
            "--constraint",
            str(ROOT / "constraints.txt"),
            "--wheel-dir",
            str(folder),
            requirement,
        ],
        check=True,
    )


def measure(extra: str, wheels: Path, folder: Path) -> Installed:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    report = folder / "report.json"
    requirement = f"qedge-dagster[{extra}]" if extra else "qedge-dagster"
    offline = ["--no-index", "--find-links", str(wheels), "--report", str(report)]
    subprocess.run([*PIP, "--python", str(python), "install", "--quiet", *offline, requirement], check=True)
    entries: list[dict[str, Any]] = json.loads(report.read_text("utf-8"))["install"]
    (packages,) = folder.glob("Lib/site-packages" if sys.platform == "win32" else "lib/*/site-packages")
    return Installed(
        licences={entry["metadata"]["name"]: licence(entry["metadata"], packages) for entry in entries},
        download_bytes={entry["metadata"]["name"]: size_of(entry["download_info"]["url"]) for entry in entries},
        installed_bytes=sum(path.stat().st_size for path in packages.rglob("*") if path.is_file()),
        imports={module: measure_import(python, module) for module in EXTRAS[extra]},
    )


def licence(metadata: dict[str, Any], packages: Path) -> str:
    """The SPDX expression, else the classifier, else the licence field, else the first line of the licence itself."""
    if expression := metadata.get("license_expression"):
        return str(expression)
    classifiers = [c.rpartition(" :: ")[2] for c in metadata.get("classifier", ()) if c.startswith("License ::")]
    stated = sorted(set(classifiers) - {"OSI Approved"}) or [str(metadata.get("license", "")).strip()]
    if not stated[0]:
        folder = f"{metadata['name'].replace('-', '_')}-{metadata['version']}.dist-info"
        texts = sorted(packages.glob(f"{folder}/**/LICEN[CS]E*"))
        stated = [texts[0].read_text("utf-8").strip()] if texts else ["not stated"]
    first_lines = (text.partition("\n")[0].strip() for text in stated)
    return " / ".join(SPDX.get(line, line) for line in first_lines)


def size_of(url: str) -> int:
    return Path(unquote(urlsplit(url).path)).stat().st_size


def measure_import(python: Path, module: str) -> tuple[float, int]:
    """Seconds of CPU beyond those of an interpreter that imports nothing, and the warnings printed."""
    seconds = min(cpu_seconds(python, f"import {module}") for _ in range(REPEATS))
    bare = min(cpu_seconds(python, "pass") for _ in range(REPEATS))
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        f"    import {module}\n"
        "print(len(caught))"
    )
    done = subprocess.run([str(python), "-I", "-c", code], check=True, capture_output=True, text=True)
    return seconds - bare, int(done.stdout) + len(done.stderr.splitlines())


def cpu_seconds(python: Path, code: str) -> float:
    """Of a child process: on a busy machine the clock on the wall says little."""
    before = os.times()
    subprocess.run([str(python), "-I", "-c", code], check=True, capture_output=True)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def table(rows: dict[str, Installed]) -> str:
    """One line per extra, counting what it brings beyond the package without extras."""
    core = rows[""]
    lines = [
        "| install | packages | download | installed | import (CPU) | import warnings |",
        "|---|---:|---:|---:|---|---|",
    ]
    for extra, row in rows.items():
        base = core if extra else None
        names = row.licences.keys() - (base.licences.keys() if base else ())
        download = sum(row.download_bytes[name] for name in names)
        installed = row.installed_bytes - (base.installed_bytes if base else 0)
        lines.append(
            f"| {f'`[{extra}]`' if extra else 'without extras'} | {'+' if base else ''}{len(names)}"
            f" | {'+' if base else ''}{megabytes(download)} | {'+' if base else ''}{megabytes(installed)}"
            f" | {', '.join(f'`{module}` {seconds:.2f} s' for module, (seconds, _) in row.imports.items())}"
            f" | {', '.join(f'{count}' if count else 'none' for _, count in row.imports.values())} |"
        )
    lines += ["", "Licences, by what brings them:", ""]
    for extra, row in rows.items():
        names = row.licences.keys() - (core.licences.keys() if extra else ())
        lines.append(f"* {f'`[{extra}]`' if extra else 'Without extras'}: {licences(row, names) or 'nothing more'}.")
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return "\n".join([*lines, "", f"Measured on {machine}, with the versions of constraints.txt."])


def licences(row: Installed, names: set[str]) -> str:
    """Every licence with its packages, or with their number where it has more than six."""
    packages: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names, key=str.lower):
        packages[row.licences[name]].append(name)
    by_number = sorted(packages.items(), key=lambda item: (-len(item[1]), item[0]))
    return "; ".join(f"{kind} ({', '.join(held) if len(held) <= 6 else len(held)})" for kind, held in by_number)


def megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.0f} kB"


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        wheels = Path(temporary) / "wheels"
        fetch_wheels(wheels)
        rows = {extra: measure(extra, wheels, Path(temporary) / f"venv-{extra}") for extra in EXTRAS}
    before, _, rest = PAGE.read_text("utf-8").partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n{table(rows)}\n{END}{after}", "utf-8")
    print(f"Wrote the table of {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
