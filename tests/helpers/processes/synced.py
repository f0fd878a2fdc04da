"""What is synced to the disk, and what was there at that moment: a power loss keeps no more."""

import os
from pathlib import Path

import msgspec
import pytest


class Sync(msgspec.Struct, frozen=True):
    """One sync.

    Attributes:
        path: the file or folder.
        data: what the file held; empty for a folder.
        beside: the names in its folder, or in the folder itself.
    """

    path: Path
    data: bytes
    beside: frozenset[str]


def note_syncs(monkeypatch: pytest.MonkeyPatch) -> list[Sync]:
    """Note each `os.fsync` of this process in the list that is returned; nothing is synced."""
    syncs: list[Sync] = []

    def fsync(opened: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{opened}"))
        folder = path if path.is_dir() else path.parent
        data = path.read_bytes() if path.is_file() else b""
        syncs.append(Sync(path, data, frozenset(os.listdir(folder))))

    monkeypatch.setattr(os, "fsync", fsync)
    return syncs
