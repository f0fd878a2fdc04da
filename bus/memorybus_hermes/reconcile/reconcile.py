"""Publishes what Hermes stored and the bus never got.

These are turns whose hook never ran (Hermes was killed after the reply, or memory was off), and
everything from before the bus. First the run sends all that this host has spooled, so that the log
alone shows what is missing. Then it compares each stored session with the log. It leaves turns that
are younger than `settle` seconds to the next run, because a live plugin may be about to publish
them. It also retracts turns that the person undid in Hermes and the log still has, because a
gateway's `/undo` calls no hook, and publishes those anew that were retracted although the person
did not take them back.
"""

from contextlib import ExitStack
from typing import Protocol

import msgspec
from memorybus import MemoryBus, Settings
from memorybus.clock import Clock
from memorybus.errors import LogUnavailable
from memorybus.health.monitor import Monitor, open_monitor
from memorybus.history.forgotten import NOTHING_FORGOTTEN, Forgotten
from memorybus.history.history import History

from memorybus_hermes.home import HermesHome
from memorybus_hermes.reconcile import importing
from memorybus_hermes.reconcile.history_index import HistoryIndex
from memorybus_hermes.reconcile.importing import Importer
from memorybus_hermes.reconcile.survey import SessionGap, Survey, TurnRange
from memorybus_hermes.scopes import scope_of
from memorybus_hermes.transcripts.state_db import StateDb

SETTLE_SECONDS = 30.0
"""Seconds after which no live plugin will publish a stored turn that the log lacks."""

_COUNTED = (
    "stored_sessions", "stored_turns", "missing", "recent", "undone", "forgotten", "retracted",
)  # fmt: skip
_SPOOL_STEP = 0.5
_SPOOL_STEPS = 60


class SpoolsBusy(LogUnavailable):
    """Agents of this host still hold events that the log lacks."""


class ReconcileRequest(msgspec.Struct, frozen=True):
    """What a run shall do.

    Attributes:
        since: only turns from this time on, milliseconds since the Unix epoch; 0 for all turns and
            the memory files.
        settle: see `SETTLE_SECONDS`, seconds; a smaller value is safe only while no Hermes runs.
    """

    apply: bool = False  # whether to publish; otherwise the run only reports what is missing
    since: int = 0
    session: str = ""  # only this session's turns; empty for all sessions and the memory files
    settle: float = SETTLE_SECONDS


class SessionFound(msgspec.Struct, frozen=True):
    """One session in which something is missing, undone or too young to compare.

    Attributes:
        started_at: when it began, milliseconds since the Unix epoch.
        origin: how it came from `parent`: start, branch, compression.
        parent: the session it continues; empty for a first session.
        turns: how many answered turns it has in ``state.db``, copies left out.
        recent: how many are too young to compare.
        undone: how many turns the log has although the person undid them.
    """

    session: str
    source: str
    user: str
    started_at: int
    origin: str
    parent: str
    turns: int
    missing: int
    recent: int
    undone: int
    ended: bool


class ReconcileReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a run found and did; its ``--json``.

    Attributes:
        applied: whether the run published; otherwise it only compared.
        sessions: the sessions with something missing, undone or too young to compare.
        other_sessions: how many sessions of cron jobs and sub-agents were left out.
        recent: how many turns were left for the next run.
        undone: how many turns the log had although the person undid them; retracted if applied.
        forgotten: how many turns and entries of memory files the log lacks because their owner was
            forgotten (`memorybus forget`); they are not published.
        retracted: how many of the missing turns the log had retracted by mistake: the person did
            not take them back.
        memories: how many entries of memory files the log lacked.
        trimmed: how many of these were published without their messages, which were too large.
        spooled_elsewhere: how many events of this host had not reached the log when a dry run
            began.
    """

    home: str
    applied: bool
    sessions: list[SessionFound] = []
    stored_sessions: int = 0
    other_sessions: int = 0
    stored_turns: int = 0
    missing: int = 0
    recent: int = 0
    undone: int = 0
    forgotten: int = 0
    retracted: int = 0
    memories: int = 0
    published: int = 0
    trimmed: int = 0
    refused: list[str] = []
    spooled_elsewhere: int = 0


class ReconcileProgress(Protocol):
    """Shows the progress of a run."""

    def begin_stage(self, what: str, total: int) -> None:
        """Show that a stage of `total` steps begins."""

    def advance(self, count: int) -> None:
        """Show that `count` more steps are done."""

    def show_waiting(self, unsent: int) -> None:
        """Show that the run waits until the log has taken `unsent` events."""


class Reconciliation:
    """One run. Use it once, from one thread; `run` does everything."""

    def __init__(
        self,
        home: HermesHome,
        settings: Settings,
        request: ReconcileRequest,
        clock: Clock,
        progress: ReconcileProgress,
    ) -> None:
        self._home = home
        self._settings = settings
        self._request = request
        self._clock = clock
        self._progress = progress
        self._sessions: list[SessionFound] = []
        self._counts = dict.fromkeys(_COUNTED, 0)
        self._trimmed = 0
        self._forgotten = NOTHING_FORGOTTEN

    def run(self) -> ReconcileReport:
        """Compare, and publish if the request says so.

        Raises:
            StateDbError: ``state.db`` is missing or cannot be read.
            LogUnavailable: Redis does not answer. `SpoolsBusy` and `LogStalled` are kinds of
                it: the log does not take this host's events.
            ConfigError, SpoolError: see `MemoryBus.connect`.
        """
        until = self._clock.now_ms() - int(self._request.settle * 1000)
        with ExitStack() as opened:
            db = opened.enter_context(StateDb(self._home.state_db))
            index = opened.enter_context(HistoryIndex())
            bus = None
            with open_monitor(self._settings) as monitor:
                monitor.log.open()
                if self._request.apply:
                    bus = opened.enter_context(MemoryBus.connect(self._settings))
                    self._empty_spools(bus, monitor)
                elsewhere = monitor.read_spool().events
                self._read_history(History.from_settings(monitor.log.redis, self._settings), index)
            return self._compare(db, index, bus, until, elsewhere)

    def _empty_spools(self, bus: MemoryBus, monitor: Monitor) -> None:
        """Wait until the log has everything that this host has spooled so far."""
        for _ in range(_SPOOL_STEPS):
            bus.flush("logged", _SPOOL_STEP)
            waiting = monitor.read_spool().events
            if not waiting:
                return
            self._progress.show_waiting(waiting)
            self._clock.sleep(_SPOOL_STEP)
        raise SpoolsBusy(
            f"the log has not taken {waiting} events of this host yet, which may be the very turns "
            f"that seem to be missing; run this again when `memorybus status` shows that no event "
            f"waits in a spool"
        )

    def _read_history(self, history: History, index: HistoryIndex) -> None:
        self._progress.begin_stage("read the log", sum(head.n for head in history.log.heads()))
        agent = scope_of(self._settings, self._home.initialize_arguments("cli")).agent
        self._forgotten = Forgotten(history.forgotten_queries())
        index.read(history, agent, self._progress.advance)
        history.close()

    def _compare(
        self, db: StateDb, index: HistoryIndex, bus: MemoryBus | None, until: int, elsewhere: int
    ) -> ReconcileReport:
        self._progress.begin_stage("compare", db.message_count())
        survey = Survey(
            self._home,
            self._settings,
            db,
            index,
            forgotten=self._forgotten,
            host=bus.sessions.get if bus else lambda scope, session: None,
            on_rows=self._progress.advance,
        )
        importer = Importer(bus, self._clock, self._progress.show_waiting) if bus else None
        selection = TurnRange(self._request.since, until, self._request.session)
        for gap in survey.sessions(selection):
            self._note(gap)
            if importer is not None and not gap.is_complete:
                self._import(importer, survey, gap, db)
        entries, refused = self._memories(index, importer, bus)
        if importer is not None:
            importer.finish()
        return ReconcileReport(
            home=str(self._home.path),
            applied=bus is not None,
            sessions=self._sessions,
            **self._counts,
            other_sessions=survey.others,
            memories=entries,
            published=importer.published if importer else 0,
            trimmed=self._trimmed,
            refused=(importer.refused if importer else []) + refused,
            spooled_elsewhere=elsewhere,
        )

    def _note(self, gap: SessionGap) -> None:
        counts = {
            "stored_sessions": 1,
            "stored_turns": gap.turns,
            "missing": len(gap.missing),
            "recent": gap.recent,
            "undone": len(gap.undone),
            "forgotten": gap.forgotten,
            "retracted": len(gap.retracted),
        }
        for name, count in counts.items():
            self._counts[name] += count
        if gap.recent or not gap.is_complete:
            self._sessions.append(_session_found(gap))

    def _import(self, importer: Importer, survey: Survey, gap: SessionGap, db: StateDb) -> None:
        session = importer.begin(gap)
        if session is None:
            return
        for turn in survey.turns(gap.stored.id, gap.missing):
            retracted = gap.retracted.get(turn.row, "")
            if importer.turn(session, turn, gap.stored.model, retracted):
                self._trimmed += turn.trimmed
        if gap.undone:
            importer.undo(session, gap)
        if gap.needs_end:
            importer.end(session, gap, db.usage(gap.stored.id))

    def _memories(
        self, index: HistoryIndex, importer: Importer | None, bus: MemoryBus | None
    ) -> tuple[int, list[str]]:
        """Count the memory entries that the log lacks, and publish them with an importer."""
        if self._request.session or self._request.since:
            return 0, []
        scope = scope_of(self._settings, self._home.initialize_arguments("cli"))
        entries = importing.find_missing(self._home, scope, index)
        if self._forgotten.hides(scope, "", 0):  # nothing shows that they were written later
            self._counts["forgotten"] += len(entries)
            entries = []
        if importer is None or bus is None:
            return len(entries), []
        return len(entries), importing.publish(bus, scope, entries, importer.paced.publish)


def _session_found(gap: SessionGap) -> SessionFound:
    return SessionFound(
        session=gap.stored.id,
        source=gap.stored.source,
        user=gap.scope.user,
        started_at=gap.stored.started_at,
        origin=gap.place.origin,
        parent=gap.place.ref.parent,
        turns=gap.turns,
        missing=len(gap.missing),
        recent=gap.recent,
        undone=len(gap.undone),
        ended=gap.needs_end,
    )
