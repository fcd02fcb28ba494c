"""Formulas in a line: the signs that stand for places, such as a fraction's bar, and the brackets that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qedge_dagster.extractors.docx.xml import attribute, math

__all__ = ["Formulas"]

#: What stands before a part of a formula.
_SIGNS = {"num": "", "den": "/", "sub": "_", "sup": "^", "lim": "_", "deg": ""}
_BLANK = " "


class Formulas:
    """`parts` gives the pieces of text that the formula is added to, None where it is not seen."""

    def __init__(self, parts: Callable[[], list[str] | None]) -> None:
        self._parts = parts
        self._stack: list[tuple[str, list[str] | None, int]] = []  # of each open part: what, where to, from where
        self._inside: list[_Structure] = []  # the structures that are open
        self._formulas: int | None = None  # of the open paragraph of formulas

    def starts(self) -> dict[str, Callable[[Mapping[str, str]], None]]:
        handlers: dict[str, Callable[[Mapping[str, str]], None]] = {
            **{kind: self._start_structure(kind) for kind in ("d", "rad", "nary", "func", "m", "eqArr")},
            **{part: self._start_part(part) for part in _SIGNS},
            "oMathPara": self._start_paragraph,
            "oMath": self._start_formula,
            "mr": self._start_row,
            "e": self._start_element,
            "begChr": self._character("opening"),
            "endChr": self._character("closing"),
            "chr": self._character("sign"),
        }
        return {name: handler for local, handler in handlers.items() for name in math(local)}

    def ends(self) -> dict[str, Callable[[], None]]:
        handlers: dict[str, Callable[[], None]] = {
            **dict.fromkeys(("d", "rad", "nary", "func", "m", "eqArr"), self._end_structure),
            **dict.fromkeys((*_SIGNS, "e"), self._end_part),
            "naryPr": self._add_sign,
            "oMathPara": self._end_paragraph,
        }
        return {name: handler for local, handler in handlers.items() for name in math(local)}

    def _add(self, text: str) -> None:
        parts = self._parts()
        if parts is not None and text:
            parts.append(text)

    def _start_paragraph(self, _: Mapping[str, str]) -> None:
        self._formulas = 0

    def _end_paragraph(self) -> None:
        self._formulas = None

    def _start_formula(self, _: Mapping[str, str]) -> None:
        if self._formulas:
            self._add(_BLANK)
        if self._formulas is not None:
            self._formulas += 1

    def _start_structure(self, kind: str) -> Callable[[Mapping[str, str]], None]:
        def start(_: Mapping[str, str]) -> None:
            self._inside.append(_Structure(kind))
            if kind == "rad":
                self._add("√")

        return start

    def _end_structure(self) -> None:
        structure = self._inside.pop()
        if structure.kind == "d":
            self._add(structure.closing if structure.begun else structure.opening + structure.closing)
        elif structure.kind == "m":
            self._add("]")

    def _character(self, name: str) -> Callable[[Mapping[str, str]], None]:
        def take(attributes: Mapping[str, str]) -> None:
            if self._inside:
                setattr(self._inside[-1], name, (attribute(attributes, "val") or "")[:1])

        return take

    def _add_sign(self) -> None:
        if self._inside:
            self._add(self._inside[-1].sign)

    def _start_row(self, _: Mapping[str, str]) -> None:
        if self._inside and self._inside[-1].kind == "m":
            self._add("; " if self._inside[-1].begun else "[")
            self._inside[-1].elements = 0

    def _start_element(self, _: Mapping[str, str]) -> None:
        structure = self._inside[-1] if self._inside else _Structure("")
        first = structure.elements == 0
        structure.elements += 1
        structure.begun = True
        if structure.kind == "d":
            self._add(structure.opening if first else ", ")
        elif structure.kind in ("m", "eqArr") and not first:
            self._add(", ")
        elif structure.kind in ("nary", "func"):
            self._add(_BLANK)
        self._begin_part("e" if structure.kind == "rad" else "")

    def _start_part(self, part: str) -> Callable[[Mapping[str, str]], None]:
        def start(_: Mapping[str, str]) -> None:
            self._begin_part(part)

        return start

    def _begin_part(self, part: str) -> None:
        parts = self._parts() if part else None
        self._stack.append((part, parts, len(parts) if parts is not None else 0))

    def _end_part(self) -> None:
        part, parts, start = self._stack.pop()
        if parts is None or parts is not self._parts():
            return
        text = "".join(parts[start:])
        if text and part == "deg":
            text = f"[{text}]"
        elif (
            len(text) > 1 and not text.strip().isalnum()
        ):  # what is longer than a name or a number has to be held together
            text = f"({text})"
        if text:
            parts[start:] = [_SIGNS.get(part, ""), text]


class _Structure:
    """`begun`: it has an element; `elements` counts those of the row."""

    __slots__ = ("begun", "closing", "elements", "kind", "opening", "sign")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.opening, self.closing, self.sign = "(", ")", "∫"
        self.elements = 0
        self.begun = False
