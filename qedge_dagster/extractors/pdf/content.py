"""The operators of a page's content, read faster than the library does."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pdfminer.pdfinterp import PDFContentParser, PDFPageInterpreter
from pdfminer.pdftypes import PDFStream, stream_value
from pdfminer.psparser import KWD, LIT, PSEOF, PSBaseParserToken, PSKeyword, keyword_name

__all__ = ["ContentInterpreter", "ContentParser"]

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


class ContentParser(PDFContentParser):
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

    def flush(self) -> None:
        self.results += self.curstack
        self.curstack = []


class ContentInterpreter(PDFPageInterpreter):
    def execute(self, streams: Sequence[object]) -> None:
        """Run the operators of the streams, but of none that is being run already: forms may draw themselves."""
        self.stream_ids.clear()
        contents: list[PDFStream] = []
        for reference in streams:
            stream = stream_value(reference)
            if stream.objid is not None and stream.objid not in self.parent_stream_ids:
                contents.append(stream)
                self.stream_ids.add(stream.objid)
        try:
            parser = ContentParser(contents)
            while True:
                _, value = parser.nextobject()
                if isinstance(value, PSKeyword):
                    self._run(keyword_name(value))
                else:
                    self.argstack.append(value)
        except PSEOF:
            return

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
