"""No text of a document is in what is printed, logged or shown to Dagster, whatever becomes of the document."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
import yaml

from qedge_dagster.orchestration.partitions import partition_key_of
from qedge_dagster.pipeline.events import PREVIEW_CHARACTERS
from tests.canary.documents import OUTCOMES, WORD, write_documents
from tests.orchestration.support import BATCHED

ROOT = Path(__file__).parents[2]


def _base64(data: bytes) -> list[bytes]:
    """What every text that holds `data` has in it, whatever precedes."""
    aligned = [base64.b64encode(b"\0" * shift + data)[-(-shift * 8 // 6) :] for shift in range(3)]
    return [text.rstrip(b"=")[: (len(data) - 2) * 8 // 6] for text in aligned]


# In lower case where the case says nothing.
_ENCODINGS = [WORD.encode("utf-8"), WORD.encode("utf-16-le"), WORD.encode("utf-16-be")]
_PLAIN = [
    *_ENCODINGS,
    *(data.hex().encode() for data in _ENCODINGS),
    "".join(f"\\u{ord(letter):04x}" for letter in WORD).encode(),
    "".join(f"\\x{ord(letter):02x}" for letter in WORD).encode(),
    "".join(f"%{ord(letter):02x}" for letter in WORD).encode(),
    "".join(f"&#{ord(letter)};" for letter in WORD).encode(),
    b", ".join(str(byte).encode() for byte in WORD.encode()),
]
_CASED = [form for data in _ENCODINGS for form in _base64(data)]


def occurrences(data: bytes) -> list[bytes]:
    """The forms in which the word is there."""
    lower = data.lower()
    return [form for form in _PLAIN if form in lower] + [form for form in _CASED if form in data]


def leaks(folder: Path) -> dict[str, list[bytes]]:
    """The files below `folder` that hold the word, or are called after it."""
    found = {path.name: occurrences(path.name.encode() + b"\n" + path.read_bytes()) for path in _files(folder)}
    return {name: forms for name, forms in found.items() if forms}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def run(root: Path, *command: object) -> Path:
    """A folder with all that a process printed and left in its Dagster home. The documents are in `docs`."""
    write_documents(root / "docs")
    kept = root / "kept"
    kept.mkdir()
    settings = {**BATCHED, "python_logs": {"python_log_level": "DEBUG", "managed_python_loggers": ["root"]}}
    (kept / "dagster.yaml").write_text(yaml.safe_dump(settings), "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DAGSTER_HOME": str(kept), "DAGSTER_DISABLE_TELEMETRY": "yes"}
    with (kept / "stdout").open("wb") as stdout, (kept / "stderr").open("wb") as stderr:
        done = subprocess.run(
            [sys.executable, "-m", *map(str, command)], cwd=ROOT, env=environment, stdout=stdout, stderr=stderr
        )
    assert done.returncode == 0, (kept / "stderr").read_text("utf-8")[-4000:]
    return kept


def failures(kept: Path) -> dict[str | None, object]:
    """The code of each document that Dagster was told the failure of."""
    with dg.DagsterInstance.from_config(str(kept)) as instance:
        records = instance.fetch_observations(dg.AssetKey(["notes", "collection"]), limit=1000).records
    observations = [record.event_log_entry.asset_observation for record in records]
    return {
        observation.partition: observation.metadata["code"].value
        for observation in observations
        if observation is not None and "code" in observation.metadata
    }


def without_previews(kept: Path) -> tuple[list[str], str]:
    """The previews of the documents, and the event log without them."""
    previews: list[str] = []
    log: list[str] = []
    with dg.DagsterInstance.from_config(str(kept)) as instance:
        for record in instance.fetch_materializations(
            dg.AssetKey(["chunks", "extracted_documents"]), limit=1000
        ).records:
            assert record.asset_materialization is not None
            if "preview" in record.asset_materialization.metadata:
                previews.append(str(record.asset_materialization.metadata["preview"].value))
        for dagster_run in instance.get_runs():
            log.append(dg.serialize_value(dagster_run))
            log.extend(dg.serialize_value(entry) for entry in instance.all_logs(dagster_run.run_id))
    text = "\n".join(log)
    for preview in previews:
        text = text.replace(json.dumps(preview), "")
    return previews, text


@pytest.mark.parametrize(
    "text",
    [
        f"before {WORD.upper()} after".encode(),
        f"ab{WORD}".encode("utf-16"),
        *(base64.b64encode(b"x" * shift + f" {WORD}; ".encode()) for shift in range(3)),
        *(base64.b64encode(b"x" * shift + f" {WORD}; ".encode("utf-16-be")) for shift in range(3)),
        json.dumps([*WORD.encode()]).encode(),
        "".join(f"%{ord(letter):02X}" for letter in WORD).encode(),
    ],
)
def test_the_search_finds_the_word(text: bytes) -> None:
    """In any encoding: a search that finds nothing would prove nothing."""
    assert occurrences(text)


def test_the_engine_keeps_the_text_to_itself(tmp_path: Path) -> None:
    """With each logger at DEBUG, documents that are indexed and documents that fail in each stage leave no word on
    stdout or stderr; the database has it."""
    kept = run(tmp_path, "tests.canary.ingest", "engine", tmp_path)
    assert json.loads((tmp_path / "outcomes.json").read_text("utf-8")) == OUTCOMES
    assert occurrences((tmp_path / "q.db").read_bytes())
    assert "DEBUG" in (kept / "stderr").read_text("utf-8")
    assert leaks(kept) == {}


def test_dagster_gets_no_text(tmp_path: Path) -> None:
    """Without previews, no word is in the event log, the runs, their tags and metadata, the compute logs, and what is
    printed."""
    kept = run(tmp_path, "tests.canary.ingest", "dagster", tmp_path)
    no_failure = (None, 6101, 6105)
    expected = {partition_key_of(name): code for name, code in OUTCOMES.items() if code not in no_failure}
    assert failures(kept) == expected
    names = [path.name for path in _files(kept)]
    assert "runs.db" in names
    assert any(name.endswith(".err") for name in names)
    assert leaks(kept) == {}


def test_a_preview_is_all_that_dagster_gets(tmp_path: Path) -> None:
    """`qedge ingest` prints no word. Its home has how each indexed document begins, in the metadata of its text, and
    nothing else."""
    command = ("ingest", tmp_path / "docs", "--db", tmp_path / "q.db", "--overflow", "throw", "--json")
    kept = run(tmp_path, "qedge_dagster.cli", *command)
    previews, others = without_previews(kept)
    assert all(WORD in preview and len(preview) <= PREVIEW_CHARACTERS for preview in previews)
    assert len(previews) == json.loads((kept / "stdout").read_text("utf-8"))["documents_indexed"] > 0
    assert occurrences(others.encode()) == []
    assert all(name.endswith((".db", ".db-wal")) for name in leaks(kept))
