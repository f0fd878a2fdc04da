"""Files of an archive in a directory are on the disk before anybody relies on them."""

import os
from pathlib import Path

import pytest
from memorybus.archive.objects.local import LocalObjects


def test_new_folders_survive_a_power_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G7: the log is trimmed only when the names of all new folders are on the disk, too."""
    synced: list[str] = []

    def fsync(opened: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{opened}"))

    monkeypatch.setattr(os, "fsync", fsync)
    root = tmp_path / "archive" / "ns"
    objects = LocalObjects(root)
    assert objects.put_new("p01/segments/one", b"1")
    folders = (tmp_path, root.parent, root, root / "p01", root / "p01/segments")
    assert [one for one in synced if ".new-" not in one] == [str(folder) for folder in folders]
    synced.clear()
    assert objects.put_new("p01/segments/two", b"2")
    assert [one for one in synced if ".new-" not in one] == [str(folders[-1])]
