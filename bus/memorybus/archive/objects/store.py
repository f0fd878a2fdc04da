"""Where the archive's files lie: a directory, or an object store; one small interface for both.

Files are written once and never changed. The first writer of a name wins, and every other writer is
told so. The archive's fence relies on this (G7).
"""

from collections.abc import Sequence
from typing import BinaryIO, Protocol

import msgspec

from memorybus.errors import ArchiveUnavailable, install_command


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
        """Return a file's bytes, None if there is no such file."""
        ...

    def open(self, name: str) -> BinaryIO | None:
        """Return a file to read at random places, None if there is no such file.

        Raises:
            ArchiveDamaged: the name belongs to something that is not a file. A later read raises it
                if the file was deleted meanwhile.
        """
        ...

    def path_of(self, name: str) -> str:
        """Return where a file lies on this host's disk; "" if it lies elsewhere."""
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


MISSING_EXTRA = "the extra `archive`"
"""What the error names if the libraries of the archive are not installed."""


def missing_extra_error(error: ImportError) -> ArchiveUnavailable:
    return ArchiveUnavailable(
        f"the archive needs {error.name or 'pyarrow and obstore'}, of {MISSING_EXTRA}; "
        f"run: {install_command('archive')}"
    )
