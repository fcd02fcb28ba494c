"""Extractors for the process of `extractors.isolation`: each does to itself what a parser may do to it."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from qedge_dagster.documents import DocumentBlock, ExtractedDocument, normalize_text
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.base import ExtractionContext
from qedge_dagster.sources.base import SourceItem


class Misbehaving:
    """A document's first word says what is done with it; any other is its text."""

    id = "misbehaving"
    version = 1
    variant = ""
    extensions = frozenset({".bad"})
    media_types = frozenset({"application/x-bad"})

    def __init__(self, suffix: str = "") -> None:
        self._suffix = suffix

    def isolated(self) -> Mapping[str, Any]:
        return {"suffix": self._suffix}

    def can_extract(self, item: SourceItem) -> bool:  # noqa: ARG002 - the contract's signature
        return True

    def extract(self, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:
        with item.open() as stream:
            text = stream.read().decode("utf-8", "surrogatepass")
        with item.open() as again:
            assert again.read().decode("utf-8", "surrogatepass") == text
        word = text.partition(" ")[0]
        if word == "sleep":
            time.sleep(600)
        elif word == "spin":
            while True:
                pass
        elif word == "hang":  # in C, with the interpreter's lock held
            ctypes.PyDLL(None).pause()
        elif word == "allocate":
            kept = [bytearray(1 << 24) for _ in range(1 << 12)]
            del kept
        elif word == "segfault":
            ctypes.string_at(0)
        elif word == "exit":
            os._exit(3)
        elif word == "print":
            print("noise", flush=True)
            sys.stderr.write("noise\n")
            os.write(1, b"J\xff\xff\xff\xff\xff\xff\xff\xffnoise")
        elif word == "recurse":
            self.extract(item, context)
        elif word == "raise":
            raise ValueError(text)
        elif word.isdecimal():
            raise QedgeError(int(word), "as told", remedy="do it otherwise")
        elif word == "signal":  # into a FIFO, and hang if so told
            _, fifo, *more = text.split()
            with open(fifo, "wb", buffering=0) as opened:
                opened.write(b"!")
            if more == ["sleep"]:
                time.sleep(600)
        elif word == "pid":
            text = str(os.getpid())
        text = (normalize_text(text) if context.normalize_text else text) + self._suffix
        incomplete = QedgeError(6107, "page 3 of 5 was slow").failure() if word == "part" else None
        blocks = (DocumentBlock("paragraph", 0, len(text), page=3),) if text else ()
        metadata = {"title": "Ünïcode \ud800", "pages": 2, "share": 0.1, "none": None, "list": [1, {"a": True}]}
        return ExtractedDocument(
            *(item.document_id, self.id, 1, item.media_type, text, blocks, metadata, 3, bool(text), ("a warning",)),
            incomplete=incomplete,
        )
