"""A disk as the power cut leaves it: what was synced is there, of the rest any part may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.faults.vfs import Operation

__all__ = ["Disk"]

_SECTOR = 512


@dataclass(slots=True)
class _Live:
    """A file as its users see it; `synced` is what of it is safe, `pending` the writes since then. `new` until the
    first sync."""

    data: bytearray
    synced: bytes
    new: bool = False
    pending: list[Operation] = field(default_factory=list)


class Disk:
    """Takes operations one by one. A file's name is safe when the file was synced, as file systems have it; its
    deletion is when the folder was, which SQLite does with the first sync of a new journal or WAL."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._live = {name: _Live(bytearray(data), data) for name, data in files.items()}
        #: By name, what a cut leaves at worst.
        self._safe = dict(files)

    def apply(self, operation: Operation) -> None:
        name = operation.name
        if operation.kind == "open":
            if operation.new:
                self._live[name] = _Live(bytearray(), b"", new=True)
        elif operation.kind == "delete":
            self._live.pop(name, None)
            if operation.new:
                self._safe.pop(name, None)
        elif name in self._live:  # a temporary file needs no care
            file = self._live[name]
            if operation.kind == "sync":
                if file.new and name.endswith(("-wal", "-journal")):
                    self._safe = {known: data for known, data in self._safe.items() if known in self._live}
                file.new = False
                file.synced = self._safe[name] = bytes(file.data)
                file.pending.clear()
            else:
                _change(file.data, operation)
                file.pending.append(operation)

    def worst(self) -> dict[str, bytes]:
        """Nothing survives that was not synced."""
        return dict(self._safe)

    def torn(self, chance: Random) -> dict[str, bytes]:
        """Of what was not synced, any sectors survive, in any order of time; names and deletions too."""
        left = {name: data for name, data in self._safe.items() if name in self._live or chance.random() < 0.5}
        for name, file in self._live.items():
            if name in self._safe and self._safe[name] != file.synced and chance.random() < 0.5:
                continue  # the file that had the name before
            if name not in self._safe and chance.random() < 0.5:
                continue
            data = bytearray(file.synced)
            survival = chance.choice((0.1, 0.5, 0.9, 1.0))
            for operation in file.pending:
                for part in _sectors(operation):
                    if chance.random() < survival:
                        _change(data, part)
            left[name] = bytes(data)
        return left


def _change(data: bytearray, operation: Operation) -> None:
    if operation.kind == "truncate":
        del data[operation.offset :]
        return
    data.extend(bytes(max(0, operation.offset - len(data))))
    data[operation.offset : operation.offset + len(operation.data)] = operation.data


def _sectors(operation: Operation) -> list[Operation]:
    if operation.kind == "truncate":
        return [operation]
    offset, data = operation.offset, operation.data
    parts: list[Operation] = []
    while data:
        size = _SECTOR - offset % _SECTOR
        parts.append(Operation("write", operation.name, offset, data[:size]))
        offset, data = offset + size, data[size:]
    return parts
