"""The ``hermes`` command itself, as a person runs it: set-up, one question, a conversation."""

import json
import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from helpers.hermes.hermes_agent import PYTHON, VENV
from helpers.hermes.hermes_world import World
from helpers.processes.terminals import Terminal
from helpers.processes.waiting import wait_until
from memorybus.clock import SYSTEM
from memorybus.events import SessionEnded, TurnCompleted
from memorybus_hermes.home import active_provider

pytestmark = [pytest.mark.hermes, pytest.mark.releases, pytest.mark.timeout(240)]

PAUSE = 0.3
"""Seconds; if enter comes within 0.05 s of a change of the text, 0.22 takes it for pasted."""

BY_ENTRY_POINT = pytest.mark.skipif("0.19" in VENV.name, reason="0.19 reads no entry points")


@pytest.fixture(scope="module", name="world")
def _world(hermes_world: World) -> World:
    return hermes_world


def test_one_question_is_a_turn(world):
    """``hermes -z``: the answer on standard output, the turn and its end in the log."""
    done = world.home.run("-z", "how deep is the sea", "--toolsets", "memory")
    assert done.returncode == 0, done.stderr
    assert "I have heard: how deep is the sea" in done.stdout
    wait_until(lambda: "how deep is the sea" in world.turns(), "the turn is in the log", 60)
    [turn] = [e for e in world.events(TurnCompleted) if e.event.user == "how deep is the sea"]
    assert turn.scope.platform == "cli"


def test_a_single_query_of_chat_is_a_turn(world):
    """``hermes chat -q``: the turn is in the log, also though the process ends at once."""
    done = world.home.run("chat", "-q", "how high is the sky", "--toolsets", "memory")
    assert "how high is the sky" in done.stdout, done.stderr
    wait_until(lambda: "how high is the sky" in world.turns(), "the turn is in the log", 60)
    [turn] = [e for e in world.events(TurnCompleted) if e.event.user == "how high is the sky"]
    world.wait_events(SessionEnded, turn.session.id)


def test_hermes_tells_how_its_memory_is(world):
    """``hermes memory status`` names the plugin as active and installed."""
    done = world.home.run("memory", "status")
    assert done.returncode == 0, done.stderr
    assert "memorybus" in done.stdout
    assert "available" in done.stdout.lower()


def test_hermes_has_the_plugins_own_commands(world):
    """``hermes memorybus status``: the subcommand of the active provider works."""
    done = world.home.run("memorybus", "status")
    assert "plugin" in done.stdout + done.stderr, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_install_and_activate_make_hermes_use_it(world):
    """``memorybus hermes install --activate`` alone: a Hermes without memory has it afterwards."""
    home = world.make_home("fresh", "")
    words = ("--home", home.path, "--python", PYTHON, "--activate", "--json")
    told = json.loads(world.memorybus("hermes", "install", *words))
    assert told["active"] == "memorybus"
    done = home.run("-z", "is this remembered now", "--toolsets", "memory")
    assert "I have heard" in done.stdout, done.stderr
    wait_until(lambda: "is this remembered now" in world.turns(), "the turn is in the log", 60)


@BY_ENTRY_POINT
def test_the_entry_point_alone_is_enough(world):
    """Without the plugin's directory, status is green and Hermes has the plugin's own commands."""
    home = world.make_home("bare", "")
    assert home.run("memory", "setup", "memorybus").returncode == 0
    assert not (home.path / "plugins" / "memorybus").exists()
    words = ("hermes", "status", "--home", home.path, "--python", PYTHON)
    assert "Hermes takes the entry point" in world.memorybus(*words)
    shown = home.run("memorybus", "status")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "Hermes takes the entry point" in shown.stdout


@BY_ENTRY_POINT
def test_a_disabled_plugin_is_no_green_status(world):
    """With the plugin in `plugins.disabled`, status shows Hermes's reason, and what helps."""
    home = world.make_home("disabled", "")
    home.config["memory"]["provider"] = "memorybus"
    home.config["plugins"] = {"disabled": ["memorybus"]}
    home.write_config()
    words = ("hermes", "status", "--home", home.path, "--python", PYTHON, "--json")
    checks = json.loads(world.memorybus(*words, code=1))["checks"]
    (plugin,) = [check for check in checks if check["name"] == "plugin"]
    assert not plugin["ok"]
    assert "disabled via plugins.disabled" in plugin["found"]
    assert f"out of plugins.disabled in {home.path / 'config.yaml'}" in plugin["fix"]


@BY_ENTRY_POINT
def test_after_the_installation_one_command_sets_memory_up(world):
    """`hermes memory setup memorybus` in a fresh home asks, writes, proves; nothing is CRITICAL."""
    home = world.make_home("asked", "")
    env = {k: v for k, v in home.environment().items() if not k.startswith("MEMORYBUS_")}
    hermes = [str(PYTHON), str(VENV / "bin" / "hermes")]
    terminal = Terminal([*hermes, "memory", "setup", "memorybus"], env, home.path / "cwd")
    try:
        terminal.see("Which providers shall remember?")
        terminal.type("builtin")
        terminal.see("published, applied and recalled in")
        terminal.see("hermes memorybus up")
        assert terminal.end() == 0, terminal.seen
    finally:
        terminal.close()
    assert home.path.joinpath("memorybus.toml").read_text() == 'providers = ["builtin"]\n'
    assert active_provider(home.path / "config.yaml") == "memorybus"

    def shown(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [*hermes, "memorybus", *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    with subprocess.Popen([*hermes, "memorybus", "up"], env=env, stderr=subprocess.DEVNULL) as up:
        try:
            wait_until(lambda: shown("status").returncode == 0, "status is green", 90)
            seen = shown("status").stdout + shown("doctor").stdout
        finally:
            up.send_signal(signal.SIGINT)
    assert up.returncode == 0
    assert "CRITICAL" not in seen
    assert "✗" not in seen


def test_hermes_and_memorybus_show_the_same_status(world):
    """Each check of `memorybus hermes status` stands in `hermes memory status`, result included."""
    words = ("hermes", "status", "--home", world.home.path, "--python", PYTHON, "--json")
    shown = world.home.run("memory", "status").stdout
    for check in json.loads(world.memorybus(*words))["checks"]:
        assert f"    {check['name']}: {'✓' if check['ok'] else '✗'} " in shown


def test_uninstall_ends_the_recording(world):
    """Without files, or with them, Hermes records nothing more, and what remains is named."""
    home = world.make_home("gone", "")
    where = ("--home", home.path, "--python", PYTHON)
    world.memorybus("hermes", "install", *where, "--activate")
    home.run("-z", "this is remembered", "--toolsets", "memory")
    wait_until(lambda: "this is remembered" in world.turns(), "the turn is in the log", 60)
    told = json.loads(world.memorybus("hermes", "uninstall", *where, "--json"))
    assert (told["removed"], told["deactivated"]) == (True, True)
    assert any("pip uninstall memorybus" in what for what in told["remains"])
    done = home.run("-z", "this is forgotten", "--toolsets", "memory")
    assert "I have heard" in done.stdout, done.stderr
    assert "memorybus" not in home.run("memory", "status").stdout.split("Installed plugins")[0]
    world.home.run("-z", "this came last", "--toolsets", "memory")
    wait_until(lambda: "this came last" in world.turns(), "the turn is in the log", 60)
    assert "this is forgotten" not in world.turns()


@BY_ENTRY_POINT
def test_uninstall_ends_what_the_entry_point_began(world):
    """An installation by pip alone is switched off, too."""
    home = world.make_home("unplugged", "")
    home.run("memory", "setup", "memorybus")
    told = world.memorybus("hermes", "uninstall", "--home", home.path, "--python", PYTHON)
    assert "memory.provider: off" in told
    assert "`hermes memory setup` still offers it" in told
    shown = home.run("memory", "status").stdout
    assert "(none" in shown


def test_install_finds_the_hermes_beside_it(world, monkeypatch):
    """Without ``hermes`` on the PATH, and without --python, the Hermes of our own Python is it."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    home = world.make_home("beside", "")
    told = json.loads(
        world.memorybus("hermes", "install", "--home", home.path, "--activate", "--json")
    )
    assert told["python"]["python"] == str(PYTHON)
    assert told["active"] == "memorybus"


def test_a_conversation_at_a_terminal(world):
    """The interactive prompt on a terminal: turns, ``/new`` and ``/quit`` reach the log."""
    with terminal(world) as (master, process):
        said = Screen(master)
        said.wait("❯")
        said.type("the owl hoots at midnight")
        said.wait("I have heard: the owl hoots at midnight")
        first = _session_of(world, "the owl hoots at midnight")
        said.type("/new")
        said.wait_until(lambda: world.events(SessionEnded, first), "the first session has ended")
        said.type("the lark sings at dawn")
        said.wait("I have heard: the lark sings at dawn")
        said.type("/quit")
        said.wait_until(lambda: process.poll() is not None, "Hermes ends")
    second = _session_of(world, "the lark sings at dawn")
    assert first != second
    world.wait_events(SessionEnded, second)


def _session_of(world: World, said: str) -> str:
    wait_until(lambda: said in world.turns(), "the turn is in the log", 60)
    (turn,) = [e for e in world.events(TurnCompleted) if e.event.user == said]
    return turn.session.id


class Screen:
    """What a terminal shows, as plain text."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._raw = b""
        self._seen = 0

    @property
    def text(self) -> str:
        """All that was shown; one read may end within a character or an escape sequence."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._raw.decode(errors="replace"))

    def type(self, line: str) -> None:
        """Type a line; press enter a moment after it is shown, as sooner it counts as pasted."""
        os.write(self._master, line.encode())
        self.wait(line)
        shown_at = SYSTEM.monotonic()
        self.wait_until(lambda: SYSTEM.monotonic() - shown_at > PAUSE, "a person's pause is over")
        os.write(self._master, b"\r")

    def wait(self, words: str) -> None:
        """Wait until some words are shown, and forget what came before."""
        self.wait_until(lambda: words in self.text[self._seen :], f"{words!r} is on the screen")
        self._seen = self.text.index(words, self._seen) + len(words)

    def wait_until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait for a condition; what is shown meanwhile is read, else Hermes would stand still."""

        def holds() -> Any:
            self.read()
            return condition()

        wait_until(holds, what, 90)

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
