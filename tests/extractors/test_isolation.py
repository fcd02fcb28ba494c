"""Extraction in a process that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors import ExtractionContext, TextExtractor
from qedge_dagster.extractors.isolation import ExtractionLimits, ExtractionProcess, isolate
from tests.extractors.isolated import Misbehaving
from tests.extractors.processes import lives, wait_until_gone
from tests.extractors.support import item

ROOT = Path(__file__).parents[2]
CONTEXT = ExtractionContext()


@pytest.fixture(scope="module")
def process() -> Iterator[ExtractionProcess]:
    with closing(ExtractionProcess(ExtractionLimits(2.0, 256 << 20))) as opened:
        yield opened


def extract(process: ExtractionProcess, text: str, extractor: Misbehaving | None = None):
    given = item(text.encode("utf-8", "surrogatepass"), "a.bad", "application/x-bad")
    return isolate(extractor or Misbehaving(), process).extract(given, CONTEXT)


@given(st.text(st.characters(codec=None), max_size=200))
def test_the_same_as_in_this_process(process: ExtractionProcess, text: str) -> None:
    """A document that went through the process equals that of a call, surrogates and all, and its metadata keep the
    types that a version is made of."""
    text = "text " + text
    given_item = item(text.encode("utf-8", "surrogatepass"), "a.bad", "application/x-bad")
    there, here = extract(process, text), Misbehaving().extract(given_item, CONTEXT)
    assert there == here
    assert there.metadata == here.metadata
    assert repr(dict(there.metadata)) == repr(dict(here.metadata))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sleep", "took longer than 2 s"),
        ("spin", "took longer than 2 s"),
        ("hang", "took longer than 2 s"),
        ("allocate", "more than 256 MiB"),
        ("segfault", "SIGSEGV"),
        ("exit", "ended with code 3"),
        ("recurse", "nested too deeply"),
        ("raise secret", "raised ValueError"),
    ],
)
def test_what_a_parser_may_do(process: ExtractionProcess, text: str, reason: str) -> None:
    """Each costs its own document, with 6102 and the reason and no word of the document; the next one is extracted."""
    with pytest.raises(QedgeError) as caught:
        extract(process, text)
    assert caught.value.code == 6102
    assert reason in caught.value.message
    assert "secret" not in str(caught.value)
    assert extract(process, "fine").text == "fine"


def test_what_it_prints_is_no_answer(process: ExtractionProcess) -> None:
    """Output of a parser, from Python or from C, is lost, and the document is not."""
    assert extract(process, "print").text == "print"


@pytest.mark.parametrize("code", [6103, 6104, 6105, 6107])
def test_codes_come_back(process: ExtractionProcess, code: int) -> None:
    """What the extractor says of a document arrives as it was said."""
    with pytest.raises(QedgeError) as caught:
        extract(process, str(code))
    assert (caught.value.code, caught.value.message, caught.value.remedy) == (code, "as told", "do it otherwise")


def test_one_process_for_many(process: ExtractionProcess) -> None:
    """Documents share a process, each extractor has its own options, and a killed process is gone."""
    pids = {extract(process, "pid").text for _ in range(3)}
    assert len(pids) == 1
    assert extract(process, "text", Misbehaving("!")).text == "text!"
    assert extract(process, "text").text == "text"
    with pytest.raises(QedgeError):
        extract(process, "exit")
    assert not lives(int(pids.pop()))


def test_the_current_folder_holds_documents_not_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document called json.py, in the folder that a command is given from, is not run."""
    for name in ("json.py", "struct.py", "ctypes.py"):
        (tmp_path / name).write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", ".")] + [str(ROOT)])
    with closing(ExtractionProcess(ExtractionLimits(10.0, 1 << 28))) as process:
        assert extract(process, "text").text == "text"


def test_others_stay_here() -> None:
    """An extractor that does not ask for it is not isolated."""
    with closing(ExtractionProcess(ExtractionLimits(1.0, 1 << 28))) as process:
        text = TextExtractor()
        assert isolate(text, process) is text


def test_an_item_that_cannot_be_opened(process: ExtractionProcess) -> None:
    """What `open` and the stream raise passes through, and the next document is extracted."""
    broken = item(b"", "a.bad", "application/x-bad")
    broken.open = partial(open, ROOT / "no such file", "rb")
    with pytest.raises(FileNotFoundError):
        isolate(Misbehaving(), process).extract(broken, CONTEXT)
    assert extract(process, "fine").text == "fine"


@pytest.mark.parametrize("word", ["sleep", "hang", "spin"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_does_not_outlive_its_parent(number: signal.Signals, word: str) -> None:
    """However the parent dies, and whatever the process is doing, it is gone soon after."""
    code = f"""
from tests.extractors.test_isolation import *
process = ExtractionProcess(ExtractionLimits(60.0, 1 << 28))
print(extract(process, "pid").text, flush=True)
extract(process, "{word}")
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        time.sleep(0.2)
        assert lives(worker)
        parent.send_signal(number)
        parent.wait(30)
    wait_until_gone(worker)
