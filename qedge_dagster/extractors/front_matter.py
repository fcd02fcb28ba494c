"""The metadata block at the top of a Markdown file: YAML between `---` lines, or TOML between `+++` lines."""

from __future__ import annotations

import base64
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, time
from typing import Any, cast

import yaml

__all__ = ["FrontMatter", "read_front_matter"]

#: A longer one is not read: the YAML parser is slow, and real ones are a few lines.
MAX_CHARACTERS = 16 * 1024
_MAX_DEPTH = 32

_YAML = re.compile(r"---[ \t]*\n(?P<body>(?:[^\n]*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_TOML = re.compile(r"\+\+\+[ \t]*\n(?P<body>(?:[^\n]*\n)*?)\+\+\+[ \t]*(?:\n|\Z)")
# What tells front matter that does not parse from a rule that opens the text: its first line of content is a key.
_YAML_KEY = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[^\s#-][^\n:]{0,200}:(?:\s|\Z)")
_TOML_KEY = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*(?:\[|[\w.\"'-]+[ \t]*=)")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """`end` is where the text proper begins: 0 if it has no front matter."""

    end: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    warnings: tuple[str, ...] = ()


def read_front_matter(text: str) -> FrontMatter:
    """Front matter is a mapping between fences, the first of which is the first line. Anything else stays text. A block
    that is clearly meant as one but cannot be parsed is a warning, and no text either.

    Values are plain: text, numbers, booleans, None, lists and mappings with text keys; dates are ISO 8601.
    """
    head = text[:MAX_CHARACTERS]
    if match := _YAML.match(head):
        return _parsed("YAML", match, _load_yaml, _YAML_KEY)
    if match := _TOML.match(head):
        return _parsed("TOML", match, _load_toml, _TOML_KEY)
    return FrontMatter()


def _parsed(name: str, match: re.Match[str], load: Callable[[str], object], key: re.Pattern[str]) -> FrontMatter:
    body = match["body"]
    try:
        value = load(body)
        if isinstance(value, dict):
            return FrontMatter(match.end(), _plain(cast("dict[object, object]", value)))
    except Exception as error:  # the parsers raise much besides their own errors for hostile input
        if key.match(body):
            return FrontMatter(match.end(), warnings=(f"{name} front matter was not read: {_reason(error)}",))
    return FrontMatter()


def _reason(error: Exception) -> str:
    """Where and what, without the text that the parsers' messages quote."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"malformed at line {error.problem_mark.line + 2}"
    return str(error) if isinstance(error, _NotReadError) else f"malformed ({type(error).__name__})"


class _NotReadError(Exception):
    """Sound, but more than is taken."""


class _Loader(yaml.SafeLoader):
    """Without aliases, which expand a few lines into gigabytes, and without deep nesting, which is slow."""

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise _NotReadError("it has aliases")
        if self._depth == _MAX_DEPTH:
            raise _NotReadError(f"it is nested more than {_MAX_DEPTH} deep")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _load_yaml(body: str) -> object:
    return yaml.load(body, _Loader)  # noqa: S506 - a SafeLoader


def _load_toml(body: str) -> object:
    if sys.version_info < (3, 11):
        raise _NotReadError("TOML needs Python 3.11 or later")
    import tomllib

    return tomllib.loads(body)


def _plain(value: object) -> Any:
    if isinstance(value, int) and value.bit_length() > 64:
        return hex(value)  # Python refuses to write out very long ones in decimal
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # an escape in YAML can make a lone surrogate
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {str(_plain(k)): _plain(v) for k, v in items}
    if isinstance(value, (set, frozenset)):
        return sorted(str(_plain(member)) for member in cast("set[object]", value))
    return [_plain(member) for member in cast("list[object]", value)]
