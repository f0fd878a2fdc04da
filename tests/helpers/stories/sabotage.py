"""Deliberate bugs: a copy of the sources with a few words changed, and the tests that run on it.

The working tree is never touched. A text to be replaced that does not stand in its file exactly
once is an error: the code has moved on, and the table must follow.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[3]
ROOTS = ("bus", "providers", "workers")
COPIED = (*ROOTS, "tests", "pyproject.toml")
SECONDS = 600.0
"""In which a set of tests must have ended, on a busy machine."""

RED = 1
"""pytest's exit code if tests ran and some failed; others mean that they could not run."""


class Patch(msgspec.Struct, frozen=True):
    """A change of one source file."""

    file: str
    old: str
    new: str


class Sabotage(msgspec.Struct, frozen=True):
    """A deliberate bug, and the tests of which at least one must notice it."""

    name: str
    patches: tuple[Patch, ...]
    tests: tuple[str, ...]


class Moved(AssertionError):
    """The text to be replaced is not there, or not once."""


class Copy:
    """A copy of the sources and tests.

    Args:
        directory: where it is made; must not exist.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        for name in COPIED:
            source, target = ROOT / name, directory / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        # Not unpacked anew below a directory that PostgreSQL's user may not enter.
        (ROOT / ".servers").mkdir(exist_ok=True)
        (directory / ".servers").symlink_to(ROOT / ".servers")

    def change(self, patch: Patch) -> None:
        """Replace a text in a file.

        Raises:
            Moved: it does not stand there exactly once.
        """
        path = self.directory / patch.file
        text = path.read_text()
        if text.count(patch.old) != 1:
            raise Moved(f"{patch.file} holds {patch.old!r} {text.count(patch.old)} times")
        path.write_text(text.replace(patch.old, patch.new))

    def imported(self) -> list[Path]:
        """Return the files that the tests' imports come from."""
        words = "import memorybus, memorybus_providers, memorybus_workers as w; print("
        words += "memorybus.__file__, memorybus_providers.__file__, w.__file__)"
        return [Path(name) for name in self._python("-c", words).stdout.split()]

    def test(self, *tests: str) -> "subprocess.CompletedProcess[str]":
        """Run tests until the first fails."""
        plain = (
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            "-x",
            "--tb=line",
            "-m",
            "not fault and not soak",
        )
        return self._python("-m", "pytest", *plain, *tests)

    def _python(self, *words: str) -> "subprocess.CompletedProcess[str]":
        path = os.pathsep.join(str(self.directory / root) for root in (*ROOTS, "tests"))
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.directory,
            env=os.environ | {"PYTHONPATH": path, "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
