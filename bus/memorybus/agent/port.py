"""What a session needs of its bus, and what a tool call needs of its session."""

from __future__ import annotations

from typing import Protocol

from memorybus.agent.prompt_recorder import PromptRecorder
from memorybus.agent.session_store import HostSessions
from memorybus.agent.undone import PublishedTurns
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.events import AnyEvent, Scope, SessionRef
from memorybus.ids import NewId
from memorybus.jobs.waiting import Listener
from memorybus.outbox.publisher import Publisher
from memorybus.recall.answers import SessionRecall
from memorybus.recall.cache import WarmCache
from memorybus.recall.model import Ask
from memorybus.receipt import Level, Receipt
from memorybus.registry.tools import OfferedTools
from memorybus.tracing.spans import Tracing


class SessionBus(Protocol):
    """The part of a bus that its sessions use; `MemoryBus` documents each attribute."""

    settings: Settings
    clock: Clock
    new_id: NewId
    sessions: HostSessions
    turns: PublishedTurns
    warm: WarmCache
    recalls: SessionRecall
    listener: Listener
    tracing: Tracing
    publisher: Publisher
    prompts: PromptRecorder

    @property
    def last_sequence(self) -> int: ...

    @property
    def problem(self) -> str: ...

    def ask(self, ask: Ask) -> None: ...

    def flush(self, level: Level = "logged", timeout: float = 10.0) -> bool: ...

    def tools(self) -> OfferedTools: ...


class PublishingSession(Protocol):
    """The part of a session that a tool call uses; `Session` documents each attribute."""

    scope: Scope
    ref: SessionRef
    key: str

    def publish(self, event: AnyEvent, event_id: str = "", at: int | None = None) -> Receipt: ...
