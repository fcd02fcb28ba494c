"""Encryption of a test file by its oldest method: RC4 with 40 bits."""

from __future__ import annotations

import hashlib
import re

from pdfminer.arcfour import Arcfour

__all__ = ["encrypted"]

_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
_PERMISSIONS = 0xFFFFFFC4
_STREAM = re.compile(r"^(\d+) 0 obj\n(<<(?:(?!endobj).)*>>)\nstream\n(.*?)\nendstream", re.MULTILINE | re.DOTALL)


def encrypted(source: str, user: str, owner: str) -> str:
    """The source with its streams encrypted, an encryption dictionary as object 90, and its trailer. Strings must be in
    streams."""
    owner_entry = _rc4(_md5(_padded(owner))[:5], _padded(user))
    secret = _padded(user) + owner_entry + _PERMISSIONS.to_bytes(4, "little") + b"id"
    key = _md5(secret)[:5]

    def stream(match: re.Match[str]) -> str:
        object_key = _md5(key + int(match[1]).to_bytes(3, "little") + b"\0\0")[:10]
        content = _rc4(object_key, match[3].encode("latin-1")).decode("latin-1")
        return f"{match[1]} 0 obj\n{match[2]}\nstream\n{content}\nendstream"

    entries = f"/O <{owner_entry.hex()}> /U <{_rc4(key, _PADDING).hex()}> /P {_PERMISSIONS - (1 << 32)}"
    return (
        f"{_STREAM.sub(stream, source)}\n90 0 obj\n<< /Filter /Standard /V 1 /R 2 {entries} >>\nendobj\n"
        "trailer\n/Encrypt 90 0 R /ID [(id) (id)]\n"
    )


def _padded(password: str) -> bytes:
    return (password.encode("latin-1") + _PADDING)[:32]


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _rc4(key: bytes, data: bytes) -> bytes:
    return Arcfour(key).process(data)
