"""The crontab: times that cron takes, and commands that `qedge` takes."""

from __future__ import annotations

import shlex

from dagster._utils.schedules import is_valid_cron_string

from tests.samples.support import SAMPLES, parse

LINES = (SAMPLES / "cron" / "crontab").read_text("utf-8").splitlines()
ENTRIES = [line.split(maxsplit=5) for line in LINES if line[:1] in "*0123456789" and line]


def test_the_times() -> None:
    """Often by size and time of the files, and once a night by content, which catches what keeps both."""
    assert [" ".join(fields[:5]) for fields in ENTRIES] == ["*/10 * * * *", "0 3 * * *"]
    assert all(is_valid_cron_string(" ".join(fields[:5])) for fields in ENTRIES)


def test_the_commands() -> None:
    """Each is a command line of `qedge`, of the same source, with 75 taken for success. `%` would end a command."""
    options = []
    for *_, command in ENTRIES:
        line, _, rest = command.partition(" >/dev/null ")
        assert rest == "|| [ $? -eq 75 ]"
        assert "%" not in command
        name, values = parse(shlex.split(line))
        assert name == "ingest"
        options.append(values)
    assert [values["trust_timestamps"] for values in options] == [True, False]
    assert len({(values["collection"], values["source_id"], str(values["paths"])) for values in options}) == 1
