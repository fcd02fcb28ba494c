"""The operators of a page's content, read faster than the library does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pdfminer.pdfdevice import PDFDevice
from pdfminer.pdfinterp import PDFContentParser, PDFPageInterpreter, PDFResourceManager
from pdfminer.pdftypes import PDFStream, dict_value, resolve1, stream_value
from pdfminer.psparser import KWD, LIT, PSEOF, PSBaseParserToken, PSKeyword, PSLiteral, keyword_name

from qedge_dagster.extractors.pdf.patience import Patience

__all__ = ["ContentInterpreter", "ContentParser", "MendingParser"]

_ENDED = rb"(?=[\s\[\]()/<])"
#: A whole token of one of the common kinds, with what shows that it has ended: integer, number with a point, string
#: without escapes, string in hexadecimal, name without escapes, operator or bracket. All others, and those that the end
#: of a buffer cuts, are left to the library.
_TOKEN = re.compile(
    rb"[\s\0]*(?:([-+]?\d{1,18})%(ended)s|([-+]?(?:\d+\.\d*|\.\d+))%(ended)s|\(([^()\\]*)\)|<((?:[\dA-Fa-f]{2})*)>"
    rb"|/([\w.+-]+)%(ended)s|([A-Za-z][^#/%%\[\]()<>{}\s]*(?=[#/%%\[\]()<>{}\s])|[\[\]]))" % {b"ended": _ENDED}
)
_CONSTANTS = {b"true": True, b"false": False}
_SPELLED_OUT = {"*": "_a", '"': "_w", "'": "_q"}
#: Operators that can be no part of an array or a dictionary.
_ENDING = {KWD(name) for name in (b"BT", b"ET", b"Tf", b"Td", b"Tm", b"Tj", b"TJ", b"Do", b"q", b"Q", b"cm", b"EMC")}
_BRACKETS = {KWD(name) for name in (b"[", b"]", b"<<", b">>", b"{", b"}", b"BI", b"ID")}


class MendingParser(PDFContentParser):
    """Reads on where the library's parser would take all that follows for a part of what was not ended."""

    #: Whether the content ended within an inline image, whose end may be anywhere.
    cut = False

    def fillbuf(self) -> bool:
        changed = super().fillbuf()
        if changed and self._parse1 == self._parse_string:
            # A string that two streams share: they are joined with a blank.
            self._curtoken += b" "
            return False
        return changed

    def do_keyword(self, pos: int, token: PSKeyword) -> None:
        if self.curtype is not None and token in _ENDING:
            while self.curtype in ("a", "d", "p"):
                kind = self.curtype
                ended = self.end_type(kind)
                if kind == "a":
                    self.push(ended)
        super().do_keyword(pos, token)

    def get_inline_data(self, pos: int, target: bytes = b"EI") -> tuple[int, bytes]:
        try:
            return super().get_inline_data(pos, target)
        except PSEOF:
            self.cut = True
            raise


class ContentParser(MendingParser):
    """The same tokens as the library's, which reads them a state at a time."""

    def nexttoken(self) -> tuple[int, PSBaseParserToken]:
        # In the middle of a token the state is another one.
        if self._tokens or self._parse1 != self._parse_main:
            return super().nexttoken()
        match = _TOKEN.match(self.buf, self.charpos)
        if match is None:
            return super().nexttoken()
        self.charpos = match.end()
        integer, number, string, digits, name, word = match.groups()
        token: PSBaseParserToken
        if integer is not None:
            token = int(integer)
        elif number is not None:
            token = float(number)
        elif string is not None:
            token = string
        elif digits is not None:
            token = bytes.fromhex(digits.decode())
        elif name is not None:
            token = LIT(name.decode())
        else:
            token = _CONSTANTS[word] if word in _CONSTANTS else KWD(word)
        return self.bufpos + match.start(match.lastindex or 0), token

    def nextobject(self) -> tuple[int, Any]:
        """A token outside of all brackets is an object, as it is."""
        if not (self.results or self.context or self.curstack):
            found = self.nexttoken()
            if found[1].__class__ is not PSKeyword or found[1] not in _BRACKETS:
                return found
            self._tokens.insert(0, found)
        return super().nextobject()

    def flush(self) -> None:
        self.results += self.curstack
        self.curstack = []


class ContentInterpreter(PDFPageInterpreter):
    """Also of the forms that are drawn; `cut` is set where content ended too early."""

    def __init__(
        self,
        fonts: PDFResourceManager,
        device: PDFDevice,
        patience: Patience,
        outer: ContentInterpreter | None = None,
    ) -> None:
        super().__init__(fonts, device)
        self._patience = patience
        self._outer = outer
        self.cut = False

    def dup(self) -> ContentInterpreter:
        return ContentInterpreter(self.rsrcmgr, self.device, self._patience, self)

    def do_Do(self, xobjid_arg: Any) -> None:  # noqa: N802 - the name of the operator
        """Forms lack their bounds at times, by which text is not cut anyway."""
        form = resolve1(self.xobjmap.get(xobjid_arg.name)) if isinstance(xobjid_arg, PSLiteral) else None
        if isinstance(form, PDFStream):
            form.attrs.setdefault("BBox", [0, 0, 1, 1])
        super().do_Do(xobjid_arg)

    def do_BDC(self, tag: Any, props: Any) -> None:  # noqa: N802
        """Properties may be named, to be looked up in the resources."""
        if isinstance(props, PSLiteral):
            props = dict_value(self.resources.get("Properties")).get(props.name)
        self.device.begin_tag(tag, resolve1(props))

    def execute(self, streams: Sequence[object]) -> None:
        """Run the operators of the streams, but of none that is being run already: forms may draw themselves."""
        self.stream_ids.clear()
        contents: list[PDFStream] = []
        for reference in streams:
            stream = stream_value(reference)
            if stream.objid is not None and stream.objid not in self.parent_stream_ids:
                contents.append(stream)
                self.stream_ids.add(stream.objid)
        if not contents:
            return
        parser = ContentParser(contents)
        try:
            while True:
                _, value = parser.nextobject()
                if isinstance(value, PSKeyword):
                    self._patience()
                    self._run(keyword_name(value))
                else:
                    self.argstack.append(value)
        except PSEOF:
            self.cut = self.cut or parser.cut or bool(parser.context)
            if self._outer is not None:
                self._outer.cut = self._outer.cut or self.cut

    def _run(self, operator: str) -> None:
        if operator[-1:] in _SPELLED_OUT:
            operator = operator[:-1] + _SPELLED_OUT[operator[-1]]
        method = getattr(self, f"do_{operator}", None)
        if method is None:
            return
        count = method.__code__.co_argcount - 1
        operands = self.pop(count)
        if len(operands) == count:
            method(*operands)
