"""The ``hermes`` command itself, as a person runs it: set-up, one question, a conversation."""

import json
import os
import pty
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from helpers.hermes.hermes_agent import PYTHON, VENV
from helpers.hermes.hermes_world import World
from helpers.processes.waiting import wait_until
from memorybus.events import SessionEnded, TurnCompleted

pytestmark = [pytest.mark.hermes, pytest.mark.timeout(240)]


@pytest.fixture(scope="module", name="world")
def _world(hermes_world: World) -> World:
    return hermes_world


def test_one_question_is_a_turn(world: World) -> None:
    """``hermes -z``: the answer on standard output, the turn and its end in the log."""
    done = world.home.run("-z", "how deep is the sea", "--toolsets", "memory")
    assert done.returncode == 0, done.stderr
    assert "I have heard: how deep is the sea" in done.stdout
    wait_until(lambda: "how deep is the sea" in world.turns(), "the turn is in the log", 60)
    [turn] = [e for e in world.events(TurnCompleted) if e.event.user == "how deep is the sea"]
    assert turn.scope.platform == "cli"


def test_a_single_query_of_chat_is_a_turn(world: World) -> None:
    """``hermes chat -q``: the turn is in the log, also though the process ends at once."""
    done = world.home.run("chat", "-q", "how high is the sky", "--toolsets", "memory")
    assert "how high is the sky" in done.stdout, done.stderr
    wait_until(lambda: "how high is the sky" in world.turns(), "the turn is in the log", 60)
    [turn] = [e for e in world.events(TurnCompleted) if e.event.user == "how high is the sky"]
    world.wait_events(SessionEnded, turn.session.id)


def test_hermes_tells_how_its_memory_is(world: World) -> None:
    """``hermes memory status`` names the plugin as active and installed."""
    done = world.home.run("memory", "status")
    assert done.returncode == 0, done.stderr
    assert "memorybus" in done.stdout
    assert "available" in done.stdout.lower()


def test_hermes_has_the_plugins_own_commands(world: World) -> None:
    """``hermes memorybus status``: the subcommand of the active provider works."""
    done = world.home.run("memorybus", "status")
    assert "plugin" in done.stdout + done.stderr, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_install_and_activate_make_hermes_use_it(world: World) -> None:
    """``memorybus hermes install --activate`` alone: a Hermes without memory has it afterwards."""
    home = world.make_home("fresh", "")
    words = ("--home", home.path, "--python", PYTHON, "--activate", "--json")
    told = json.loads(world.memorybus("hermes", "install", *words))
    assert told["active"] == "memorybus"
    done = home.run("-z", "is this remembered now", "--toolsets", "memory")
    assert "I have heard" in done.stdout, done.stderr
    wait_until(lambda: "is this remembered now" in world.turns(), "the turn is in the log", 60)


def test_install_finds_the_hermes_beside_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ``hermes`` on the PATH, and without --python, the Hermes of our own Python is it."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    home = world.make_home("beside", "")
    told = json.loads(
        world.memorybus("hermes", "install", "--home", home.path, "--activate", "--json")
    )
    assert told["python"]["python"] == str(PYTHON)
    assert told["active"] == "memorybus"


def test_a_conversation_at_a_terminal(world: World) -> None:
    """The interactive prompt on a terminal: turns, ``/new`` and ``/quit`` reach the log."""
    with terminal(world) as (master, process):
        said = Screen(master)
        said.wait("❯")
        said.type("the owl hoots at midnight")
        said.wait("I have heard: the owl hoots at midnight")
        said.type("/new")
        said.wait("New session started")
        said.type("the lark sings at dawn")
        said.wait("I have heard: the lark sings at dawn")
        said.type("/quit")
        wait_until(lambda: said.ended(process), "Hermes ends", 90)
    wait_until(lambda: "the lark sings at dawn" in world.turns(), "the turns are in the log", 60)
    found = {e.event.user: e.session.id for e in world.events(TurnCompleted)}
    assert found["the owl hoots at midnight"] != found["the lark sings at dawn"]
    for session in (found["the owl hoots at midnight"], found["the lark sings at dawn"]):
        world.wait_events(SessionEnded, session)


class Screen:
    """What a terminal shows, as plain text."""

    def __init__(self, master: int) -> None:
        """Show nothing yet."""
        self._master = master
        self._raw = b""
        self._seen = 0

    @property
    def text(self) -> str:
        """All that was shown; one read may end within a character or an escape sequence."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._raw.decode(errors="replace"))

    def type(self, line: str) -> None:
        """Type a line and press enter."""
        os.write(self._master, line.encode() + b"\r")

    def wait(self, words: str) -> None:
        """Wait until some words are shown, and forget what came before."""

        def shown() -> bool:
            self.read()
            return words in self.text[self._seen :]

        wait_until(shown, f"{words!r} is on the screen", 90)
        self._seen = self.text.index(words, self._seen) + len(words)

    def ended(self, process: "subprocess.Popen[bytes]") -> bool:
        """Say whether it has ended; what it shows meanwhile is read, or it could not."""
        self.read()
        return process.poll() is not None

    def read(self) -> None:
        """Read what there is."""
        with suppress(OSError):  # nothing there, or nobody
            self._raw += os.read(self._master, 65_536)


@contextmanager
def terminal(world: World) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """Run ``hermes chat`` on a terminal of its own."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    process = subprocess.Popen(
        [PYTHON, VENV / "bin" / "hermes", "chat", "--toolsets", "memory"],
        env=world.home.environment() | {"COLUMNS": "120", "LINES": "40"},
        cwd=world.home.path / "cwd",
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield master, process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)
        os.close(master)
