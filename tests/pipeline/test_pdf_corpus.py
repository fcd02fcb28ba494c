"""Real, broken and hostile PDF files from outside the repository, where they are at hand, in a run."""

from __future__ import annotations

import re
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from qedge_dagster import FolderSource, IngestionPipeline
from qedge_dagster.extractors import default_extractors
from qedge_dagster.pipeline.events import Event
from tests.extractors.processes import children
from tests.pipeline.support import CountingEmbedder, check_integrity

_CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "pdf"
_PASSWORDS = ("test", "usersecret", "foo", "S\xaaSL\xadprep")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not _CORPUS.is_dir(), reason="the corpora are not part of the repository"),
]


def _peak_mib(pid: int) -> int:
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match[1]) >> 10


def _outcomes(database: Path, passwords: tuple[str, ...]) -> dict[str, Counter[str]]:
    """Of a run over all files: how many of each category ended how."""
    table: dict[str, Counter[str]] = {}
    times = [time.monotonic()]
    peaks: dict[int, int] = {}
    before = children()

    def watch(_: Event) -> None:
        times.append(time.monotonic())
        peaks.update((pid, _peak_mib(pid)) for pid in children() if pid not in before)

    with IngestionPipeline.open(
        database, embedder=CountingEmbedder(), extractors=default_extractors(pdf_passwords=passwords)
    ) as pipeline:
        source = FolderSource(_CORPUS, "*.pdf", source_id="pdf")
        result = pipeline.run(source, on_event=watch)
    assert children() == before
    (peak,) = peaks.values()  # one process read all of them: one that is killed has another in its place
    longest = max(now - last for last, now in pairwise(times))
    print(f"\n{result.documents_seen} files, longest {longest:.2f} s, peak of the process that extracts {peak} MiB")
    assert result.outcome == "completed"
    assert result.documents_seen == len(result.documents) == len(list(_CORPUS.glob("*.pdf")))
    for document in result.documents:
        outcome = str(document.failure.code) if document.failure else "indexed"
        table.setdefault(document.document_id.partition("__")[0], Counter())[outcome] += 1
    for category, outcomes in sorted(table.items()):
        print(f"{category:28}", ", ".join(f"{outcome}: {count}" for outcome, count in sorted(outcomes.items())))
    check_integrity(database)
    return table


def test_every_file_has_an_outcome_in_a_run(tmp_path: Path) -> None:
    """The run completes with each file indexed, or refused for what it is: none hangs, crashes, or takes too much; and
    those with a user password are indexed once it is given."""
    table = _outcomes(tmp_path / "a.db", ())
    assert not {"6102", "6107", "6155"} & {outcome for outcomes in table.values() for outcome in outcomes}
    assert {category for category, outcomes in table.items() if "6103" in outcomes} == {"enc_special", "enc_user_pw"}
    assert table["enc_user_pw"] == {"6103": 4}
    assert set(table["scan_notext"]) == {"6105"}
    for category in ("truncated_or_garbage", "fuzzed_cyclic", "no_pages_or_catalog"):
        assert set(table[category]) <= {"6104", "6105", "indexed"}
    assert _outcomes(tmp_path / "b.db", _PASSWORDS)["enc_user_pw"] == {"indexed": 4}
