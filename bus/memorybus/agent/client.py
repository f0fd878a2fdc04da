"""The client: the object through which an agent uses the bus."""

from __future__ import annotations

import atexit
import contextlib
import logging
import random
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from memorybus.agent.prompt_recorder import PromptRecorder
from memorybus.agent.session import Session
from memorybus.agent.session_events import session_details
from memorybus.agent.session_store import HostSessions
from memorybus.agent.undone import PublishedTurns
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings, load
from memorybus.errors import LogError
from memorybus.events import AnyEvent, Scope, SessionRef, SessionStarted
from memorybus.ids import NewId, new_id, new_rng
from memorybus.jobs.waiting import Listener
from memorybus.lineage import graph
from memorybus.outbox.publisher import Publisher
from memorybus.outbox.rules import Counters, SendingContext
from memorybus.recall.answers import SessionRecall
from memorybus.recall.asking import PromptAsker
from memorybus.recall.cache import WarmCache
from memorybus.recall.model import Ask
from memorybus.recall.operator_recall import RecallAnswer, recall_now
from memorybus.receipt import Level, LogState, Receipt
from memorybus.registry import tools
from memorybus.registry.tools import OfferedTools
from memorybus.registry.tools_note import ToolsNote, read_note
from memorybus.testing import crash_points
from memorybus.text.cleaning import check_id, clean_text
from memorybus.text.redact import mask_record
from memorybus.tracing.spans import Tracing
from memorybus.wire.exact import exact_value, whole

if TYPE_CHECKING:
    from memorybus.insights.report import Insights

_CLOSE_SECONDS = 2.0
"""Seconds that the end of a process waits for Redis; unsent events then stay in the spool."""


def offered_tools(settings: Settings) -> OfferedTools:
    """Return what `MemoryBus.tools` returns; this needs no bus."""
    return tools.collect_tools(read_note(settings.tools_path))


class MemoryBus:
    """The bus as an agent uses it. It is safe to use from any thread, and after a fork.

    Attributes:
        settings: see `Settings`.
        sessions: the sessions that this host knows.
        turns: the newest turns that this process has published.
        warm: the warm cache.
        recalls: answers prompts.
        listener: waits for replies.
        clock: time.
        tracing: makes spans if the process has set up a tracer provider.
        publisher: takes the events of all sessions.
        prompts: records what prompts were given.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = SYSTEM,
        new_id: NewId = new_id,
        rng: random.Random | None = None,
    ) -> None:
        logging.getLogger("memorybus").addFilter(mask_record)
        self.settings = settings
        self.new_id = new_id
        self.clock = clock
        self.tracing = Tracing(settings.namespace)
        self.sessions = HostSessions(settings.sessions_path)
        self.turns = PublishedTurns()
        self.warm = WarmCache(settings, clock, self._log_state)
        self._asker = PromptAsker(settings, clock, new_id, self._log_state)
        self.recalls = SessionRecall(self.warm, self._asker, clock)
        self.listener = Listener(settings, clock)
        self._tools_note = ToolsNote(settings, clock, new_id)
        rng = rng or new_rng()
        self.publisher = Publisher(
            SendingContext(settings, clock, rng, new_id, crash_points(settings.crash_at)),
            self.tracing,
            self._after_connecting,
        )
        self.prompts = PromptRecorder(settings, self.publisher, rng)
        atexit.register(self.leave)

    def _log_state(self) -> LogState:
        return self.publisher.flusher.state

    def _after_connecting(self) -> None:
        """Do the other work of the flusher's thread, while Redis answers."""
        self.warm.connect()
        self._asker.report(self.recalls.counted)
        self._tools_note.refresh()

    @classmethod
    def connect(cls, target: Settings | str | None = None) -> MemoryBus:
        """Open the local spool; Redis is connected in the background, and may be down (G9).

        Args:
            target: settings, or the URL of a Redis, or None for the configured one (without
                configuration: the embedded server that ``memorybus up`` runs).

        Raises:
            ConfigError: a setting is wrong.
            SpoolError: nothing can be written under `data_dir`.
        """
        return cls(target if isinstance(target, Settings) else load(url=target))

    def session(
        self,
        session_id: str | None = None,
        *,
        agent: str | None = None,
        user: str | None = None,
        workspace: str | None = None,
        platform: str | None = None,
        title: str = "",
        agent_context: str = "primary",
        details: Mapping[str, str] | None = None,
        warm: bool = True,
        at: int | None = None,
    ) -> Session:
        """Start a session, or continue one that this host knows.

        Args:
            session_id: its id; a new one if None.
            agent: the agent's identity. If it or one of the next three is None, the settings give
                it.
            user: the person.
            workspace: the project or team.
            platform: where the conversation happens.
            title: what it is about, if known; memories for this topic are recalled first.
            agent_context: the kind of run (Hermes: primary, cron, subagent, …).
            details: what else the host knows of it (chat, thread, names), for its providers.
            warm: ask for memories at once, so that the first turn has some.
            at: when it began, milliseconds; now if None.

        Raises:
            InvalidEvent: an id is not valid.
            SpoolFull: see `publish`.
        """
        scope = self._build_scope(agent, user, workspace, platform)
        session_id = check_id("session_id", self.new_id() if session_id is None else session_id)
        session = self._resume_session(scope, session_id)
        if session is None:
            session = self._start_session(scope, session_id, title, agent_context, details, at)
        if warm:
            session.warm_up(title)
        return session

    def _resume_session(self, scope: Scope, session_id: str) -> Session | None:
        ref = self.sessions.get(scope, session_id)
        return Session(self, scope, ref) if ref else None

    def _start_session(
        self,
        scope: Scope,
        session_id: str,
        title: str,
        agent_context: str,
        details: Mapping[str, str] | None,
        at: int | None,
    ) -> Session:
        session = Session(self, scope, graph.start(session_id))
        event = SessionStarted(
            platform=scope.platform,
            agent_context=clean_text(agent_context, "agent_context"),
            title=clean_text(title, "title"),
            details=session_details(details),
        )
        session.publish(event, session.event_id("start"), at)
        self.sessions.put(scope, session.ref)
        return session

    def _build_scope(
        self, agent: str | None, user: str | None, workspace: str | None, platform: str | None
    ) -> Scope:
        defaults = self.settings
        return Scope(
            agent=check_id("agent", defaults.agent if agent is None else agent),
            user=check_id("user", defaults.user if user is None else user),
            workspace=clean_text(
                defaults.workspace if workspace is None else workspace, "workspace"
            ),
            platform=clean_text(defaults.platform if platform is None else platform, "platform"),
        )

    def adopt(self, scope: Scope, ref: SessionRef, *, warm_from: str = "") -> Session:
        """Return the session at a place of the lineage that the caller knows, and note the place.

        It is meant for integrations: it publishes nothing and asks for no memories.
        """
        scope = exact_value(scope, Scope, "scope")
        ref = exact_value(ref, SessionRef, "ref")
        check_id("session_id", ref.id)
        self.sessions.put(scope, ref)
        return Session(self, scope, ref, warm_from=warm_from)

    def publish(
        self,
        event: AnyEvent,
        *,
        key: str,
        scope: Scope,
        session: SessionRef,
        event_id: str = "",
        at: int | None = None,
        trace: str = "",
        durable: bool = False,
    ) -> Receipt:
        """Publish an event as it is; `Session` has a method for each kind of event.

        If no `trace` is given and the process has tracers, the trace of the current span is used.

        Raises:
            InvalidEvent: a value has not the type of its field, which the message names.
            EventTooLarge: the event has more than `event_max_bytes`.
            SpoolFull: the spool has reached its bound, or the disk is full (G10).
        """
        return self.publisher.publish(
            event,
            key=key,
            scope=scope,
            session=session,
            event_id=event_id,
            at=at,
            trace=trace,
            durable=durable,
        )

    def ask(self, ask: Ask) -> None:
        """Ask for a recall after the events that were published so far."""
        self.publisher.ask(ask)

    @property
    def last_sequence(self) -> int:
        """The sequence of the last event this process published."""
        return self.publisher.last_sequence

    @property
    def unsent(self) -> int:
        """How many events this process published that are not known to be in the log."""
        return self.publisher.unsent

    @property
    def counters(self) -> Counters:
        """The counters of this process since it connected."""
        return self.publisher.counters(self.recalls.failures, dict(self.recalls.failed))

    @property
    def problem(self) -> str:
        """Why events are not sent now; "" while they are."""
        return self.publisher.flusher.problem

    def flush(self, level: Level = "logged", timeout: float = 10.0) -> bool:
        """Wait until everything published so far is as safe as `level` says (G1).

        Returns:
            False if this takes longer than `timeout` seconds (`problem` says why); even then no
            event is lost.
        """
        return self.publisher.flush(level, timeout)

    def recall(
        self,
        question: str,
        *,
        agent: str | None = None,
        user: str | None = None,
        workspace: str | None = None,
        session: str | None = None,
        providers: Sequence[str] | None = None,
        budget: int | None = None,
        timeout: float = 10.0,
        as_of: int | None = None,
    ) -> RecallAnswer:
        """Ask the workers now and wait for their answers; for people and tools, not for a turn.

        Args:
            question: what to recall.
            agent: only this agent's memories. If it or one of the next two is None, the settings
                give it.
            user: only this person's memories.
            workspace: only this workspace's memories; those of no workspace if "".
            session: the session that asks, if there is one.
            providers: only these providers; all that answer recalls if None.
            budget: the most characters of the block; the setting `recall_budget` if None.
            timeout: the most seconds to wait.
            as_of: only what was known at this time, milliseconds since the Unix epoch; now if None.
                A provider that does not know times is named in `missing`.

        Raises:
            InvalidEvent: an argument has the wrong type.
            NoWorker: no worker answers recalls.
            LogUnavailable: Redis is away.
        """
        scope = self._build_scope(agent, user, workspace, None)
        with self.tracing.recall() as span:
            answer = recall_now(
                self.settings,
                self.clock,
                clean_text(question, "question"),
                agent=scope.agent,
                user=scope.user,
                workspace=scope.workspace,
                session=check_id("session", session) if session else None,
                providers=providers,
                budget=self.settings.recall_budget if budget is None else whole("budget", budget),
                timeout=timeout,
                as_of=None if as_of is None else whole("as_of", as_of),
                trace=span.trace if span else "",
            )
            if span:
                span.set_counts(memories=len(answer.results), missing=len(answer.missing))
            return answer

    def tools(self) -> OfferedTools:
        """Return the tools that providers offer the model: read from a small local file (G9).

        The file is kept up to date in the background, by this process and by this host's workers.
        Until it has been written for the first time there are no tools.
        """
        return offered_tools(self.settings)

    def insights(
        self,
        *,
        days: int = 30,
        agent: str | None = None,
        user: str | None = None,
        platform: str | None = None,
        zone: str = "",
    ) -> Insights:
        """Return the figures of the last days, of everybody unless a name is given; for operators.

        It reads the archive and the log's tail: see `memorybus.insights.reading.read_insights`.

        Raises:
            MissingDuckDb: the extra `insights` is not installed.
            LogUnavailable: Redis is away.
        """
        from memorybus.insights.reading import (
            read_insights,
        )  # DuckDB is large, and agents need none

        return read_insights(
            self.settings,
            days=days,
            agent=agent,
            user=user,
            platform=platform,
            zone=zone,
            clock=self.clock,
        )

    def hurry(self, timeout: float) -> bool:
        """Send the events that Redis takes within `timeout` seconds; the rest stays in the spool.

        Returns at once if Redis is away. If Redis hangs, many calls together wait as long as one.

        Returns:
            Whether Redis took everything that this process published. Redis may have lost events
            since; only `flush` asks it again (G1's ``logged``).
        """
        return self.publisher.hurry(timeout)

    def leave(self, timeout: float = _CLOSE_SECONDS) -> None:
        """Call `hurry` because the process ends; Python calls this at its exit.

        The bus stays open: events that other exit functions publish later are sent in the same way.
        """
        self.prompts.record_all()
        self.publisher.leave(timeout)

    def close(self, timeout: float = _CLOSE_SECONDS) -> None:
        """Send the events that Redis takes within `timeout` seconds, and close the bus.

        Unsent events stay in the spool; none is lost.
        """
        atexit.unregister(self.leave)
        self.prompts.record_all()
        self.publisher.close(timeout)
        self.sessions.close()
        self.warm.close()
        with contextlib.suppress(LogError):  # counts are not worth waiting for
            self._asker.report(self.recalls.counted)
        self._asker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
