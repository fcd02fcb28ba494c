"""Documents of four formats that change at random, and the naive model of what an index of them must hold."""

from __future__ import annotations

import random
import textwrap
from pathlib import Path

from tests.extractors.docx.builder import archive
from tests.extractors.pdf.builder import build, pages
from tests.pipeline.support import prose

__all__ = ["Library"]

_SUFFIXES = (".txt", ".md", ".docx", ".pdf")
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


class Library:
    """A folder of `size` documents. `words` is what each of them says now, None for one that cannot be read."""

    def __init__(self, folder: Path, size: int, chance: random.Random) -> None:
        self._folder = folder
        self._chance = chance
        self._named = 0
        self.words: dict[str, list[str] | None] = {}
        for _ in range(size):
            self._add()

    def change(self) -> None:
        """Some edits, and as many documents that come as go."""
        for _ in range(self._chance.randint(1, 8)):
            what = self._chance.choice(["edit", "edit", "edit", "break", "rename", "replace"])
            name = self._chance.choice(list(self.words))
            if what == "edit":
                self._write(name)
            elif what == "break":
                if name.endswith((".pdf", ".docx")):
                    (self._folder / name).write_bytes(b"neither\0one nor the other" + bytes([len(self.words) % 256]))
                    self.words[name] = None
            elif what == "rename":
                other = self._new_name(Path(name).suffix)
                (self._folder / name).rename(self._folder / other)
                self.words[other] = self.words.pop(name)
            else:
                (self._folder / name).unlink()
                del self.words[name]
                self._add()

    def mend(self) -> None:
        """Nothing is broken any more."""
        for name, words in self.words.items():
            if words is None:
                self._write(name)

    def _add(self) -> None:
        self._write(self._new_name(self._chance.choice(_SUFFIXES)))

    def _new_name(self, suffix: str) -> str:
        self._named += 1
        return f"{self._named:05}{suffix}"

    def _write(self, name: str) -> None:
        paragraphs = prose(self._chance.randrange(2**32), self._chance.randint(1, 5))
        suffix = Path(name).suffix
        if suffix == ".pdf":
            data = _pdf(paragraphs)
        elif suffix == ".docx":
            data = _docx(paragraphs)
        else:
            data = "\n\n".join(["# A heading"] * (suffix == ".md") + paragraphs).encode()
        (self._folder / name).write_bytes(data)
        self.words[name] = " ".join(paragraphs).split()


def _pdf(paragraphs: list[str]) -> bytes:
    lines = [line for paragraph in paragraphs for line in textwrap.wrap(paragraph, 80)]
    shown = " T* ".join(f"({line}) Tj" for line in lines)
    return build(pages([f"BT /F1 10 Tf 12 TL 72 720 Td {shown} ET"]))


def _docx(paragraphs: list[str]) -> bytes:
    body = "".join(f"<w:p><w:r><w:t>{paragraph}</w:t></w:r></w:p>" for paragraph in paragraphs)
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" Type="{_OFFICE}" '
            'Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
        }
    )
