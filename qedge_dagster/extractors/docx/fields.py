"""Fields: their code is no text, their result is."""

from __future__ import annotations

import re

__all__ = ["Fields"]

_NUMBER = re.compile(r"[0-9]{1,4}")


class Fields:
    """Those that are open in one story, the innermost last."""

    def __init__(self) -> None:
        self._codes: list[bool] = []  # of each, whether its code is being read rather than its result
        self._withheld: list[str] = []
        self._choices: list[str] = []  # of a drop-down field
        self._chosen = 0

    @property
    def in_code(self) -> bool:
        return True in self._codes

    def withhold(self, text: str) -> None:
        """Text in a code."""
        self._withheld.append(text)

    def mark(self, kind: str | None) -> str:
        """At `begin`, `separate` or `end`. Returns what was chosen in a drop-down field, which has no result."""
        result = ""
        if kind == "begin":
            self._codes.append(True)
        elif kind == "separate" and self._codes:
            self._codes[-1] = False
        elif kind == "end" and self._codes:
            without_result = self._codes.pop()
            if without_result and self._chosen < len(self._choices):
                result = self._choices[self._chosen]
            self._choices, self._chosen = [], 0
        if not self.in_code:
            self._withheld = []
        return result

    def offer(self, choice: str | None) -> None:
        self._choices.append(choice or "")

    def choose(self, number: str | None) -> None:
        self._chosen = int(number) if number and _NUMBER.fullmatch(number) else 0

    def end_paragraph(self) -> list[str]:
        """A code that has not ended by here may never do: better a piece of code than a lost text. Returns it."""
        if not self.in_code:
            return []
        self._codes = [False] * len(self._codes)
        withheld, self._withheld = self._withheld, []
        return withheld
