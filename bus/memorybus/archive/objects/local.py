"""The archive's files in a directory. Each is written whole or not at all, and then durable."""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from memorybus import private
from memorybus.archive.objects.store import StoredFile, missing_extra_error
from memorybus.errors import ArchiveDamaged, ArchiveUnavailable
from memorybus.ids import NewId, new_id

_UNFINISHED_PREFIX = ".new-"  # the prefix of files that are not complete yet


class LocalObjects:
    """Files below a directory, which is created with the first file."""

    def __init__(self, root: Path, make_id: NewId = new_id) -> None:
        self._root = root
        self._make_id = make_id

    @property
    def where(self) -> str:
        return str(self._root)

    def put_new(self, name: str, data: bytes) -> bool:
        path = self._root / name
        with self._translated_errors(path):
            _make_folder(path.parent)
            fresh = path.with_name(f"{_UNFINISHED_PREFIX}{self._make_id()}")
            try:
                _write(fresh, data)
                return _link(fresh, path) or path.read_bytes() == data
            finally:
                fresh.unlink(missing_ok=True)

    def get(self, name: str) -> bytes | None:
        path = self._root / name
        with self._translated_errors(path):
            return path.read_bytes() if _is_there(path) else None

    def open(self, name: str) -> BinaryIO | None:
        try:
            from pyarrow import OSFile  # Parquet is read from it without the interpreter's lock
        except ImportError as error:
            raise missing_extra_error(error) from error
        path = self._root / name
        with self._translated_errors(path):
            return cast("BinaryIO", OSFile(str(path))) if _is_there(path) else None

    def path_of(self, name: str) -> str:
        return str(self._root / name)

    def list(self, folder: str) -> list[StoredFile]:
        return [file for file in self._list_all(folder) if not _is_fresh(file)]

    def leftovers(self, folder: str) -> Sequence[StoredFile]:
        """Return the incomplete files directly in a folder; some may never be completed."""
        return [file for file in self._list_all(folder) if _is_fresh(file)]

    def _list_all(self, folder: str) -> Sequence[StoredFile]:
        path = self._root / folder
        with self._translated_errors(path):
            paths = sorted(path.iterdir()) if path.is_dir() else []
            states = ((one, _file_state(one)) for one in paths)
            return [
                StoredFile(
                    f"{folder}/{one.name}".lstrip("/"), s.st_size, round(s.st_mtime_ns / 1e6)
                )
                for one, s in states
                if s is not None and stat.S_ISREG(s.st_mode)
            ]

    def delete(self, name: str) -> None:
        path = self._root / name
        with self._translated_errors(path):
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _translated_errors(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ArchiveUnavailable(
                f"{path}: {error.strerror or error}; make room or make it accessible, or set "
                f"`archive` to another place"
            ) from error


def _is_fresh(file: StoredFile) -> bool:
    return file.name.rpartition("/")[2].startswith(_UNFINISHED_PREFIX)


def _is_there(path: Path) -> bool:
    """Return whether a regular file exists; reading a pipe would never end."""
    if path.is_file():
        return True
    if path.exists():
        raise ArchiveDamaged(f"{path}: this is not a regular file; restore it from a backup")
    return False


def _file_state(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _write(path: Path, data: bytes) -> None:
    with open(path, "xb", opener=private.opener) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _link(fresh: Path, path: Path) -> bool:
    try:
        os.link(fresh, path)
    except FileExistsError:
        return False
    _sync_folder(path.parent)
    return True


def _make_folder(folder: Path) -> None:
    """Create a folder and its parents, and sync each parent so that the names are durable."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(private.DIRECTORY, exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
