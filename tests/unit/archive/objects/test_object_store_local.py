"""Files of an archive in a directory are on the disk before anybody relies on them."""

from helpers.processes.synced import note_syncs
from memorybus.archive.objects.local import LocalObjects


def test_a_file_survives_a_power_loss(tmp_path, monkeypatch):
    """G7: a file has its name only when its bytes are on the disk, and then the name is synced."""
    (tmp_path / "segments").mkdir()
    syncs = note_syncs(monkeypatch)
    assert LocalObjects(tmp_path).put_new("segments/one", b"its bytes")
    file, folder = syncs
    assert (file.path.parent, file.data) == (tmp_path / "segments", b"its bytes")
    assert "one" not in file.beside
    assert folder.path == tmp_path / "segments"
    assert "one" in folder.beside


def test_new_folders_survive_a_power_loss(tmp_path, monkeypatch):
    """G7: the log is trimmed only when the names of all new folders are on the disk, too."""
    syncs = note_syncs(monkeypatch)
    root = tmp_path / "archive" / "ns"
    objects = LocalObjects(root)
    assert objects.put_new("p01/segments/one", b"1")
    folders = [tmp_path, root.parent, root, root / "p01", root / "p01/segments"]
    assert [sync.path for sync in syncs if ".new-" not in sync.path.name] == folders
    syncs.clear()
    assert objects.put_new("p01/segments/two", b"2")
    assert [sync.path for sync in syncs if ".new-" not in sync.path.name] == folders[-1:]
