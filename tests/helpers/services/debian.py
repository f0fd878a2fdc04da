"""Debian's packages, unpacked for the tests and not installed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers.services.fetched import run


@contextmanager
def unpacked(*packages: str) -> Iterator[Path]:
    """Fetch packages and unpack them into a directory that is gone afterwards.

    Raises:
        OSError: they cannot be had.
    """
    with tempfile.TemporaryDirectory() as made:
        run("apt-get", "download", *packages, cwd=made)
        for package in Path(made).glob("*.deb"):
            run("dpkg-deb", "-x", package, made)
        yield Path(made)
