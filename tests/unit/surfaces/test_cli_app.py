"""The command line's manners: help, usage errors, clear failures, exit codes."""

import os
import subprocess
import sys

import pytest
from memorybus.errors import LogUnavailable, MemoryBusError
from memorybus.surfaces.cli import app
from memorybus.surfaces.cli.app import FAILED, OK, PIPE_CLOSED, USAGE, main

COMMANDS = (
    "demo",
    "up",
    "worker",
    "ingest",
    "recall",
    "status",
    "events",
    "sessions",
    "replay",
    "doctor",
)


@pytest.fixture(autouse=True)
def _own_place(monkeypatch, short_dir):
    """No configuration of the machine, no Redis, a data directory of the test's own."""
    for name in list(os.environ):
        if name.startswith("MEMORYBUS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MEMORYBUS_DATA_DIR", str(short_dir))
    monkeypatch.chdir(short_dir)


def test_alone_it_shows_help(capsys):
    """Without a command every command is listed."""
    assert main([]) == OK

    shown = capsys.readouterr().out
    assert all(command in shown for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, capsys):
    """--help works everywhere and fails nowhere."""
    assert main([command, "--help"]) == OK

    assert "Usage" in capsys.readouterr().out


def test_the_version_is_told(capsys):
    """--version prints the installed version."""
    assert main(["--version"]) == OK

    assert capsys.readouterr().out.startswith("memorybus 0.")


@pytest.mark.parametrize(
    "words",
    [
        ["fly"],
        ["status", "--colour"],
        ["recall"],
        ["replay", "--provider", "builtin"],
        ["events", "ls", "--limit", "many"],
        ["ingest"],
    ],
)
def test_wrong_usage_is_2(words, capsys):
    """A command that was not understood says so on stderr and ends with 2."""
    assert main(words) == USAGE

    shown = capsys.readouterr()
    assert shown.err.strip()
    assert not shown.out.strip()


@pytest.mark.parametrize(
    "words",
    [
        ["status", "--json"],
        ["events", "ls"],
        ["events", "tail"],
        ["sessions", "tree", "--json"],
        ["recall", "anything", "--json"],
    ],
)
def test_without_redis_the_next_command_is_named(words, capsys):
    """A command that needs Redis names what starts it: no traceback, nothing on stdout."""
    assert main(words) == FAILED

    shown = capsys.readouterr()
    assert "error: " in shown.err
    assert "memorybus up" in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


def test_an_unknown_setting_is_named(monkeypatch, capsys):
    """A misspelt variable is an error that names the nearest known one."""
    monkeypatch.setenv("MEMORYBUS_URI", "x")

    assert main(["status"]) == FAILED
    assert "did you mean 'url'" in capsys.readouterr().err


def test_hostile_errors_are_made_harmless(capsys):
    """An error message may quote a user's text; it never steers the terminal."""
    app.complain(MemoryBusError("no [bold]session[/bold] \x1b[2J"))

    assert capsys.readouterr().err == "error: no [bold]session[/bold] \\x1b[2J\n"


def test_advice_follows_the_kind_of_error(capsys):
    """An unreachable log names the command that starts one."""
    app.complain(LogUnavailable("gone"))

    assert "memorybus up" in capsys.readouterr().err


def test_an_interrupt_is_130(monkeypatch):
    """Ctrl-C ends any command with 130 and without a traceback."""

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "build", lambda: lambda words: interrupted())

    assert main(["status"]) == 130


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_a_closed_pipe_is_quiet(words, short_dir):
    """A reader that went away, as `head` does, causes no complaint."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "memorybus.surfaces.cli", *words],
            stdout=writer,
            stderr=subprocess.PIPE,
            cwd=short_dir,
            timeout=30,
            check=False,
        )
    finally:
        os.close(writer)

    assert (done.returncode, done.stderr) == (PIPE_CLOSED, b"")
