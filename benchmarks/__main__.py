"""All benchmarks, or those named: what each part costs beside this machine's own limit, measured in the same run.

python -m benchmarks [PART ...] [--full] [--rounds 5] [--json]
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.figures import Figure, Scale, Target, line

#: Each is a module here with `measure(scale)`, which yields its figures.
PARTS: list[str] = [
    "ahead",
    "bookkeeping",
    "extraction",
    "sensor_tick",
    "start",
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios to the machine's own limits.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--full", action="store_true", help="the full sizes, which take hours")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of which the median is taken (default: 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    scale = Scale(options.rounds, options.full)
    parts: list[str] = options.parts or PARTS
    found: list[Figure] = []
    for part in parts:
        for figure in measured(part, scale) if len(parts) == 1 else apart(part, scale):
            found.append(figure)
            if not options.json:
                print(line(figure), flush=True)
    if options.json:
        print(json.dumps([figure.facts() for figure in found], indent=2))


def measured(part: str, scale: Scale) -> Iterator[Figure]:
    yield from importlib.import_module(f"benchmarks.{part}").measure(scale)


def apart(part: str, scale: Scale) -> Iterator[Figure]:
    """In a process of its own, so that no part warms up another's memory."""
    command = [sys.executable, "-m", "benchmarks", part, "--rounds", str(scale.rounds), "--json"]
    command += ["--full"] if scale.full else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - of our own words
    for facts in json.loads(done.stdout):
        target = facts["target"] and Target(**facts["target"])
        yield Figure(**{name: facts[name] for name in ("name", "ours", "unit", "limit", "against")}, target=target)


if __name__ == "__main__":
    main()
