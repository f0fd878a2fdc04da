"""A bus with something of everything, and the commands that show it."""

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters
from memorybus_console.cli.app import main
from memorybus_workers.archiving.archiver import run_once

from helpers.archive.sealed_log import QUICK
from helpers.hermes.hermes_state import HermesState
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.processes.waiting import wait_until
from helpers.stories.replaying import begun
from helpers.stories.scenario import NAME, environ, recorded, wait_applied, worker

LONG_NAME = "2026-11-24-a-session-of-somebody-with-a-long-name"
COPY = "a-copy-with-a-rather-long-name"
QUESTION = "Where is the brass key?"
REASON = "the backend refuses this, with a sentence about it that no terminal has on one line"


class Said(NamedTuple):
    """What a command did: its exit code, and what it wrote."""

    code: int
    out: str
    err: str


class FakeTerminal(io.StringIO):
    """A stream that says it is a terminal; a real one's driver is not what is tested here."""

    def isatty(self) -> bool:
        """Say so."""
        return True


class Everything(NamedTuple):
    """The bus.

    Attributes:
        settings: where it is.
        directory: an empty one, for files of commands.
        event: the id of a dead letter's event.
    """

    settings: Settings
    directory: Path
    event: str

    def commands(self) -> list[tuple[str, ...]]:
        """Return the commands that show something and change nothing."""
        return [
            ("status",),
            ("insights", "--zone", "UTC"),
            ("check",),
            ("doctor",),
            ("config", "show"),
            ("config", "reference"),
            ("provider", "ls"),
            ("provider", "test", "holographic", "--wait", "0"),
            ("dlq", "ls"),
            ("dlq", "ls", "--group", "error"),
            ("dlq", "ls", "--group", "provider"),
            ("dlq", "show", self.event, "--provider", NAME),
            ("dlq", "discard", "--all", "--reason", "x"),
            ("replay", "ls"),
            ("replay", "--provider", NAME, "--into", "another"),
            ("replay", "--cancel", COPY),
            ("rebuild", "ls"),
            ("rebuild", NAME),
            ("diff", NAME, "holographic", "--query", QUESTION),
            ("archive", "ls"),
            ("archive", "verify"),
            ("archive", "run"),
            ("tools", "ls"),
            ("tools", "call", "memory_search", "--arg", f"query={QUESTION}"),
            ("recall", QUESTION),
            ("recall", QUESTION, "--explain"),
            ("recall", "--evaluate", str(self.questions())),
            ("recall", QUESTION, "--prompt"),
            ("memories", "people"),
            ("memories", "list", "--user", "default"),
            ("events", "ls"),
            ("events", "get", self.event),
            ("events", "search", "brass"),
            ("sessions", "tree"),
            ("forget", "--user", "default"),
            ("export", str(self.directory / "out.jsonl"), "--user", "default"),
            ("ingest", str(self.conversation())),
            ("hermes", "install", "--home", str(self.hermes()), "--python", sys.executable),
            ("hermes", "status", "--home", str(self.hermes())),
            ("hermes", "reconcile", "--home", str(self.hermes())),
        ]

    def questions(self) -> Path:
        """Return a file of questions for `recall --evaluate`."""
        path = self.directory / "questions.jsonl"
        path.write_text(json.dumps({"question": QUESTION, "expected": ["under the pot"]}) + "\n")
        return path

    def conversation(self) -> Path:
        """Return a recorded conversation."""
        path = self.directory / "talk.jsonl"
        lines = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]
        path.write_text("\n".join(map(json.dumps, lines)))
        return path

    def hermes(self) -> Path:
        """Return a Hermes home in which somebody has talked."""
        path = self.directory / "hermes"
        if not path.exists():
            with HermesState(path) as state:
                state.session("a-session-of-hermes")
                state.turn("a-session-of-hermes", QUESTION, "Under the pot.")
        return path

    def run(self, *words: str, columns: str = "", terminal: bool = False) -> Said:
        """Run a command to its end, at a terminal of so many columns, or piped."""
        out: Any = FakeTerminal() if terminal else io.StringIO()
        err = io.StringIO()
        given = environ(self.settings) | {"TERM": "xterm", "NO_COLOR": "1"}
        given |= {"COLUMNS": columns} if columns else {}
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        with (
            mock.patch.dict(os.environ, kept | given, clear=True),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = main(list(words))
        return Said(code, out.getvalue(), err.getvalue())


@contextmanager
def everything(
    redis_client: Any, make_settings: MakeSettings, directory: Path, spawn: Spawn
) -> Iterator[Everything]:
    """Fill a bus; a worker runs meanwhile."""
    found = recorded("KeyedSide")
    found["providers"] = (NAME, "holographic")
    settings = make_settings(**QUICK, **found)
    running = worker(spawn, settings, jobs=1)
    try:
        with MemoryBus.connect(settings) as bus:
            for session in ("chat-17", LONG_NAME):
                said = bus.session(session, warm=False)
                said.memory_written("add", "The brass key is under the pot.", store="user")
                said.turn_completed(QUESTION, "Under the pot, as always.")
            bus.session(LONG_NAME, warm=False).turn_completed(f"!permanent {REASON}", "ok")
            bus.session(LONG_NAME, warm=False).turn_completed("behind it", "ok")
            assert bus.flush("logged", 25)
        for name in settings.providers:
            wait_applied(redis_client, settings, name)
        desk = DeadLetters(settings)
        wait_until(lambda: desk.letters([NAME]), "something is refused")
        run_once(settings)
        begun(settings, COPY)
        yield Everything(settings, directory, desk.letters([NAME])[0].stored.letter.event_id)
        desk.close()
    finally:
        running.terminate()
