"""The plugin for Hermes without a Hermes: a bus that remembers what was published through it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.events import AnyEvent, Envelope, Event, TurnStarted
from memorybus.recall.answers import Answer, RecallQuestion, SessionRecall
from memorybus.recall.pending import Ask
from memorybus.receipt import Receipt
from memorybus_hermes.plugin.provider import HermesMemory
from memorybus_hermes.plugin.shared import HermesProcess, SharedBus

NOWHERE = "redis://127.0.0.1:1/0"
"""A Redis that is not there."""


class RecordingBus(MemoryBus):
    """Publishes as ever, and keeps what was accepted, each id once as the log would (G2)."""

    def __init__(self, settings: Settings, **injected: Any) -> None:
        self.accepted: dict[str, Envelope] = {}
        self.asked: list[Ask] = []
        self.conflicts: list[Envelope] = []
        super().__init__(settings, **injected)
        self._publish = self.publisher.publish
        self.publisher.publish = self._publish_and_keep  # sessions publish there
        self.recalls = KeptQuestions(self.recalls, self.asked)

    def _publish_and_keep(self, event: AnyEvent, **said: Any) -> Receipt:
        receipt = self._publish(event, **said)
        where = {name: said[name] for name in ("key", "scope", "session")}
        at = said.get("at") or 0
        kept = Envelope(id=receipt.event_id, at=at, event=event, **where)
        before = self.accepted.setdefault(receipt.event_id, kept)
        if before.event != event:
            self.conflicts.append(kept)
        return receipt

    def ask(self, ask: Ask) -> None:
        """Ask, and keep what was asked."""
        self.asked.append(ask)
        super().ask(ask)


class KeptQuestions(SessionRecall):
    """Answers prompts as another does, and keeps what would be asked."""

    def __init__(self, recalls: SessionRecall, asked: list[Ask]) -> None:
        self._recalls, self._asked = recalls, asked
        self.counted = recalls.counted

    def answer(self, question: RecallQuestion, wait: float) -> Answer:
        if question.text is not None:
            self._asked.append(question.build(question.text))
        return self._recalls.answer(question, wait)


class Host:
    """What stands for Hermes's process: one bus, many instances, a hint for the agent's thread.

    Attributes:
        hint: what Hermes notes for the agent's thread; None in a plugin host.
        home: the HERMES_HOME.
    """

    def __init__(self, settings: Settings, home: Path, clock: Clock = SYSTEM) -> None:
        self.settings = settings
        self.home = home
        self.hint: str | None = ""
        self.clock = clock
        self.process = HermesProcess(RecordingBus, clock)
        (home / "memories").mkdir(parents=True, exist_ok=True)

    def instance(self, session_id: str = "", **told: Any) -> HermesMemory:
        """Make an instance as Hermes does, initialised if a session is named."""
        memory = HermesMemory(
            process=self.process,
            settings=lambda _: self.settings,
            hint=lambda: self.hint,
            clock=self.clock,
        )
        if session_id:
            memory.initialize(session_id, **self.told(**told))
        return memory

    def told(self, **told: Any) -> dict[str, Any]:
        """Return what Hermes tells `initialize`."""
        given = {
            "hermes_home": str(self.home),
            "platform": "cli",
            "agent_context": "primary",
            "agent_identity": "coder",
            "agent_workspace": "hermes",
        }
        return given | told

    def restart(self) -> None:
        """Stand for another process, which knows only what this one has noted on the disk."""
        bus = self.bus
        self.process = HermesProcess(lambda _: bus, self.clock)

    @property
    def shared(self) -> SharedBus:
        """The process's bus with what belongs to it."""
        return self.process.shared(self.settings)

    @property
    def bus(self) -> RecordingBus:
        bus = self.shared.bus
        assert isinstance(bus, RecordingBus)
        return bus

    def events(self, *kinds: type[Event]) -> list[Envelope]:
        """Return what was published, in order; without the volatile starts of turns."""
        found = [e for e in self.bus.accepted.values() if not isinstance(e.event, TurnStarted)]
        return [e for e in found if not kinds or isinstance(e.event, kinds)]

    def write(self, name: str, *entries: str) -> None:
        """Write a memory file as Hermes does: in one step."""
        path = self.home / "memories" / name
        new = path.with_suffix(".tmp")
        new.write_text("\n§\n".join(entries))
        new.replace(path)


@contextmanager
def hermes_host(url: str = NOWHERE, clock: Clock = SYSTEM, **settings: Any) -> Iterator[Host]:
    """Run a host on a directory of its own; by default its Redis is down."""
    directory = Path(tempfile.mkdtemp(prefix="mb-"))
    host = Host(
        Settings(url=url, data_dir=directory / "data", **settings), directory / "home", clock
    )
    try:
        yield host
        assert host.bus.conflicts == []
    finally:
        host.shared.bus.close(0.1)
        shutil.rmtree(directory, ignore_errors=True)


def talk(*turns: str) -> list[dict[str, Any]]:
    """Return a transcript in which each text is answered by itself in capitals."""
    messages: list[dict[str, Any]] = []
    for text in turns:
        messages += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": text.upper()},
        ]
    return messages


def told(event: Event) -> dict[str, Any]:
    """Return an event's fields."""
    return msgspec.structs.asdict(event)
