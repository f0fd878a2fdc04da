"""Where the archive's files lie: a directory, or an object store; one small interface for both.

Files are written once and never changed. That the first writer of a name wins, and every other is
told so, is what the archive's fence rests on (G7).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from memorybus.errors import ArchiveUnavailable, ConfigError

REMOTE = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss")
"""Schemes of object stores."""


class StoredFile(msgspec.Struct, frozen=True):
    """A file: its name, its size in bytes, and when it was written (wall time, milliseconds)."""

    name: str
    size: int
    modified_at: int


class Objects(Protocol):
    """Files by name; a name's parts are parted by ``/``.

    Every method raises `ArchiveUnavailable` if the store does not answer, refuses, or is full.
    """

    @property
    def where(self) -> str:
        """Where it is, without credentials."""
        ...

    def put_new(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet, whole or not at all; durable when it returns.

        Returns:
            False if there is a file of that name with other bytes, which stays as it is.
        """
        ...

    def get(self, name: str) -> bytes | None:
        """Return a file's bytes, None if there is no such file.

        Raises:
            ArchiveDamaged: what has the name is no file.
        """
        ...

    def open(self, name: str) -> BinaryIO | None:
        """Return a file to read at random places, None if there is no such file.

        Raises:
            ArchiveDamaged: what has the name is no file; a read of it: it has gone meanwhile.
        """
        ...

    def list(self, folder: str) -> list[StoredFile]:
        """Return the files right in a folder, by name; none if there is no such folder."""
        ...

    def leftovers(self, folder: str) -> Sequence[StoredFile]:
        """Return what writers that died, or still write, have right in a folder: no file yet."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file; it is no matter if it is gone."""
        ...


def directory_of(place: str) -> Path | None:
    """Return the directory that a place means, None if it is an object store.

    Raises:
        ConfigError: neither a directory nor a URL we know.
    """
    scheme, mark, _ = place.partition("://")
    if not mark:
        return Path(place).expanduser().absolute()
    if scheme in REMOTE:
        return None
    parts = urlsplit(place)
    if scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return Path(unquote(parts.path))
    known = ", ".join(f"{one}://" for one in ("file", "s3", "gs", "az"))
    raise ConfigError(f"archive: {scheme}:// is no place for it; use a directory or {known}")


def open_objects(place: str, folder: str = "") -> Objects:
    """Return the files below a folder of a place; nothing is read or made yet.

    Args:
        place: a directory, or a URL of an object store.
        folder: below it.

    Raises:
        ConfigError: neither a directory nor a URL we know.
        ArchiveUnavailable: the extra ``archive`` is missing, or the store cannot be set up.
    """
    directory = directory_of(place)
    if directory is not None:
        from memorybus.archive.objects.local import LocalObjects

        return LocalObjects(directory / folder)
    try:
        from memorybus.archive.objects.remote import RemoteObjects
    except ImportError as error:
        raise missing(error) from error
    return RemoteObjects(place, folder)


def missing(error: ImportError) -> ArchiveUnavailable:
    """Return the error that tells how to get the libraries of the archive."""
    return ArchiveUnavailable(
        f"the archive needs {error.name or 'pyarrow and obstore'}, which is not installed; run: "
        f"pip install 'memorybus[archive]'"
    )
