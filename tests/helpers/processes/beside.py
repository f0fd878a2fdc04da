"""The release before this work, to run beside the present code on one log."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from memorybus.config.settings import Settings

from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import TESTS, environ

OLD = "64bcbdb"
"""The last revision in which a provider's lanes had one worker at a time."""

_ROOTS = ("bus", "providers", "workers", "tests")

_MOVED = {
    "bus/memorybus/agent/client.py": "memorybus.client",
    "bus/memorybus/config/settings.py": "memorybus.settings",
    "tests/helpers/providers/recording.py": "helpers.recording",
}
"""What both releases are told by one name, and where the older one has it."""


class Release:
    """The sources of an older release, and processes that run them.

    Args:
        directory: where its sources are.
    """

    def __init__(self, directory: Path) -> None:
        self._path = os.pathsep.join(str(directory / root) for root in _ROOTS)
        words = "from memorybus import settings as s; print(s.__file__, *s.FIELDS)"
        said = subprocess.run(
            [sys.executable, "-c", words],
            env={"PYTHONPATH": self._path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        assert Path(said[0]).is_relative_to(directory), "the old sources are not the ones that run"
        self._known = {f"MEMORYBUS_{name.upper()}" for name in said[1:]}

    def worker(self, spawn: Spawn, settings: Settings, jobs: int = 0, crash: str = "") -> Child:
        """Start a worker of this release and wait until it is ready, or dead at a crash point."""
        return _ready(spawn, self.environ(settings) | {"MEMORYBUS_CRASH_AT": crash}, jobs)

    def agent(self, spawn: Spawn, settings: Settings, *words: str | int) -> Child:
        """Start an agent of this release (see its `helpers.scenario.main`)."""
        return spawn("-m", "helpers.scenario", *map(str, words), env=self.environ(settings))

    def environ(self, settings: Settings) -> dict[str, str]:
        """Return the environment of its processes: its sources, the settings that it knows."""
        given = environ(settings)
        known = {name: value for name, value in given.items() if name in self._known}
        # Providers of the tests come with its own helpers, those of `present` from here.
        return known | {"PYTHONPATH": os.pathsep.join((self._path, str(TESTS / "faults")))}


def present_worker(spawn: Spawn, settings: Settings, jobs: int = 0) -> Child:
    """Start a worker of the present code and wait until it is ready."""
    given = environ(settings)
    given["PYTHONPATH"] += os.pathsep + str(TESTS / "faults")
    return _ready(spawn, given, jobs)


def _ready(spawn: Spawn, env: dict[str, str], jobs: int) -> Child:
    child = spawn("-m", "memorybus_workers", "worker", "--jobs", str(jobs), env=env)
    wait_until(lambda: '"ready":true' in child.output() or not child.alive, "it is ready", 60)
    assert child.alive or env.get("MEMORYBUS_CRASH_AT"), child.output()
    return child


def unpacked(directory: Path, revision: str = OLD) -> Release:
    """Return a release out of this repository's history; skip the test where there is none."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed: the release before this one cannot be had")
    done = subprocess.run(
        [git, "-C", str(TESTS.parent), "archive", revision, *_ROOTS],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(
            f"revision {revision} is not in this repository: {done.stderr.decode().strip()}"
        )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(directory, filter="data")
    for new, old in _MOVED.items():
        path = directory / new
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"import sys\n\nimport {old}\n\nsys.modules[__name__] = {old}\n")
    return Release(directory)
