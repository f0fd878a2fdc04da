"""Small disks that run full: file systems in memory, mounted where a test says."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

MIB = 1 << 20


class Disk:
    """A mounted file system of a fixed size, which can be made larger.

    Attributes:
        path: where it is mounted.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path))

    def grow(self, size: int) -> None:
        """Give it another size."""
        _mount("-o", f"remount,size={size}", str(self.path))

    def free(self) -> int:
        """Return the bytes that are left."""
        return shutil.disk_usage(self.path).free

    def remove(self) -> None:
        """Take it away, whoever still has files open there."""
        subprocess.run(["umount", "--lazy", str(self.path)], check=True, timeout=10)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True, timeout=10)


@pytest.fixture
def make_disk(tmp_path: Path) -> Iterator[Callable[[Path, int], Disk]]:
    """Make small disks: ``make_disk(path, bytes)``; skipped where mounting is not allowed."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disks: list[Disk] = []

    def make(path: Path, size: int) -> Disk:
        try:
            disk = Disk(path, size)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"a small disk cannot be mounted here: {error}")
        disks.append(disk)
        return disk

    yield make
    for disk in disks:
        disk.remove()
