"""Where the archive's files lie: a directory, or an object store; one small interface for both.

Files are written once and never changed. The first writer of a name wins, and every other writer is
told so. The archive's fence relies on this (G7).
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
    """Files by name; ``/`` separates the parts of a name.

    Every method raises `ArchiveUnavailable` if the store does not answer, refuses, or is full.
    """

    @property
    def where(self) -> str:
        """Where the files are, without credentials."""
        ...

    def put_new(self, name: str, data: bytes) -> bool:
        """Write a new file, whole or not at all; it is durable when this returns.

        Returns:
            False if a file of that name with other bytes exists; that file stays as it is.
        """
        ...

    def get(self, name: str) -> bytes | None:
        """Return a file's bytes, None if there is no such file.

        Raises:
            ArchiveDamaged: the name belongs to something that is not a file.
        """
        ...

    def open(self, name: str) -> BinaryIO | None:
        """Return a file to read at random places, None if there is no such file.

        Raises:
            ArchiveDamaged: the name belongs to something that is not a file. A later read raises it
                if the file was deleted meanwhile.
        """
        ...

    def list(self, folder: str) -> list[StoredFile]:
        """Return the files directly in a folder, sorted by name; none if there is no folder."""
        ...

    def leftovers(self, folder: str) -> Sequence[StoredFile]:
        """Return the incomplete files directly in a folder, of writers that died or still write."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file; a missing file is no error."""
        ...


def directory_of(place: str) -> Path | None:
    """Return the directory that a place names; None if it is an object store.

    Raises:
        ConfigError: the place is neither a directory nor a URL of a known scheme.
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
    """Return the files below a folder of a place; nothing is read or created yet.

    Args:
        place: a directory, or a URL of an object store.
        folder: a folder below it.

    Raises:
        ConfigError: the place is neither a directory nor a URL of a known scheme.
        ArchiveUnavailable: the extra ``archive`` is missing, or the store cannot be set up.
    """
    directory = directory_of(place)
    if directory is not None:
        from memorybus.archive.objects.local import LocalObjects

        return LocalObjects(directory / folder)
    try:
        from memorybus.archive.objects.remote import RemoteObjects
    except ImportError as error:
        raise missing_extra_error(error) from error
    return RemoteObjects(place, folder)


def missing_extra_error(error: ImportError) -> ArchiveUnavailable:
    """Return the error that tells how to get the libraries of the archive."""
    return ArchiveUnavailable(
        f"the archive needs {error.name or 'pyarrow and obstore'}, which is not installed; run: "
        f"pip install 'memorybus[archive]'"
    )
