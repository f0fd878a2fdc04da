"""What a run of the archiver tells the command that started it."""

import sys

import pytest
from memorybus.config.settings import Settings
from memorybus.processes import commands
from memorybus.processes.reports import ArchiverRun


@pytest.mark.parametrize(
    ("run", "hindered", "idle"),
    [
        (ArchiverRun("/a", 0, False, {}), False, True),
        (ArchiverRun("/a", 3, False, {}), False, False),
        (ArchiverRun("/a", 0, False, {}, ("p01",)), False, False),
        (ArchiverRun("/a", 0, True, {}), True, False),
        (ArchiverRun("/a", 3, False, {"p01": "it differs"}), True, False),
    ],
)
def test_a_run_is_hindered_idle_or_neither(run, *, hindered, idle):
    """Nothing was due only if nothing was in the way, and nobody else was at it."""
    assert (run.hindered, run.idle) == (hindered, idle)


def test_a_silent_end_is_an_error(tmp_path, monkeypatch):
    """A killed archiver has not said that nothing was due: its exit code is told, and what next."""
    killed = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    monkeypatch.setattr(commands, "module_command", lambda *_: killed)
    with pytest.raises(commands.EndedSilently, match=r"\(exit code -9\).* memorybus doctor"):
        commands.run_archiver(Settings(data_dir=tmp_path))
