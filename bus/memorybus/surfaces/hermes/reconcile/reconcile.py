"""Brings into the log what Hermes has stored and the bus never got.

Turns whose hook never ran (killed after the reply, memory off) and everything from before the bus.
First everything that this host has spooled goes to the log, so that the log alone says what is
there; then each stored session is compared with it. What is younger than `settle` seconds is left
for the next run: a live plugin may be about to publish it. What the person took back in Hermes,
and the log does not know as taken back, is retracted there: a gateway's `/undo` tells nobody.
"""

from contextlib import ExitStack
from typing import Protocol

import msgspec

from memorybus import MemoryBus, Settings
from memorybus.clock import Clock
from memorybus.errors import LogUnavailable
from memorybus.health.monitor import Monitor, open_monitor
from memorybus.history.history import History
from memorybus.surfaces.hermes.home import HermesHome
from memorybus.surfaces.hermes.reconcile import memories
from memorybus.surfaces.hermes.reconcile.history_index import HistoryIndex
from memorybus.surfaces.hermes.reconcile.importing import Importer
from memorybus.surfaces.hermes.reconcile.survey import SessionGap, Survey, TurnRange
from memorybus.surfaces.hermes.scopes import scope_of
from memorybus.surfaces.hermes.transcripts.state_db import StateDb

SETTLE = 30.0
"""Seconds after which a stored turn that is not in the log will not come by itself."""

_COUNTED = ("stored_sessions", "stored_turns", "missing", "recent", "undone")
_SPOOL_STEP = 0.5
_SPOOL_STEPS = 60


class SpoolsBusy(LogUnavailable):
    """Agents of this host still have events that the log does not."""


class ReconcileRequest(msgspec.Struct, frozen=True):
    """What is asked for.

    Attributes:
        apply: publish; else only say what would be.
        since: turns from then on, milliseconds; 0 for all, and for the memory files.
        session: only this one's; all, and the memory files, if empty.
        settle: see `SETTLE`; less is safe only while no Hermes runs.
    """

    apply: bool = False
    since: int = 0
    session: str = ""
    settle: float = SETTLE


class SessionFound(msgspec.Struct, frozen=True):
    """One session with something to say; times are milliseconds.

    Attributes:
        session: its id.
        source: Hermes's platform.
        user: whose it is.
        started_at: when it began.
        origin: how it came from `parent`: start, branch, compression.
        parent: the session it continues, empty for a first one.
        turns: answered turns in ``state.db`` that are no copies.
        missing: those the log lacks.
        recent: those too young to tell.
        undone: those that the log has and the person took back.
        ended: whether its end is missing, too.
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
        home: the Hermes.
        applied: whether it published; else it only looked.
        sessions: those with something missing or too young.
        stored_sessions: how many were compared.
        other_sessions: cron jobs' and sub-agents', which are not remembered.
        stored_turns: answered turns in them.
        missing: turns that the log lacked.
        recent: turns left for the next run.
        undone: turns that the log had as said and Hermes as taken back; retracted if applied.
        memories: entries of memory files that the log lacked.
        published: turns published.
        trimmed: of these, how many without their messages, which were too many.
        refused: what the bus did not take, and why.
        spooled_elsewhere: events of this host that had not reached the log when a dry run looked.
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
    memories: int = 0
    published: int = 0
    trimmed: int = 0
    refused: list[str] = []
    spooled_elsewhere: int = 0


class ReconcileProgress(Protocol):
    """Is told how far a run is."""

    def total(self, what: str, total: int) -> None:
        """A stage with so many steps begins."""

    def advance(self, count: int) -> None:
        """So many steps more are done."""

    def waiting(self, unsent: int) -> None:
        """The log is waited for; so many events are before it."""


class Reconciliation:
    """One run. Use once, from one thread; `run` does it all.

    Args:
        home: the Hermes.
        settings: of the bus.
        request: what is asked for.
        clock: time.
        progress: is told how far it is.
    """

    def __init__(
        self,
        home: HermesHome,
        settings: Settings,
        request: ReconcileRequest,
        clock: Clock,
        progress: ReconcileProgress,
    ) -> None:
        """Open nothing yet."""
        self._home = home
        self._settings = settings
        self._request = request
        self._clock = clock
        self._progress = progress
        self._sessions: list[SessionFound] = []
        self._counts = dict.fromkeys(_COUNTED, 0)
        self._trimmed = 0

    def run(self) -> ReconcileReport:
        """Compare, and publish if asked to.

        Raises:
            StateDbError: no ``state.db`` that can be read.
            LogUnavailable: no log to compare with; `SpoolsBusy` and `Stalled` are such.
            ConfigError, SpoolError: see `MemoryBus.connect`.
        """
        until = self._clock.now_ms() - int(self._request.settle * 1000)
        with ExitStack() as opened:
            db = opened.enter_context(StateDb(self._home.state_db))
            known = opened.enter_context(HistoryIndex())
            bus = None
            with open_monitor(self._settings) as monitor:
                monitor.log.open()
                if self._request.apply:
                    bus = opened.enter_context(MemoryBus.connect(self._settings))
                    self._empty_spools(bus, monitor)
                elsewhere = monitor.read_spool().events
                self._read_past(History.from_settings(monitor.log.redis, self._settings), known)
            return self._compared(db, known, bus, until, elsewhere)

    def _empty_spools(self, bus: MemoryBus, monitor: Monitor) -> None:
        """Wait until the log has everything that this host has spooled so far."""
        for _ in range(_SPOOL_STEPS):
            bus.flush("logged", _SPOOL_STEP)
            waiting = monitor.read_spool().events
            if not waiting:
                return
            self._progress.waiting(waiting)
            self._clock.sleep(_SPOOL_STEP)
        raise SpoolsBusy(
            f"{waiting} events of this host are still on their way to the log, and may be the "
            f"very turns that seem to be missing; run this again when `memorybus status` shows "
            f"none to send"
        )

    def _read_past(self, history: History, known: HistoryIndex) -> None:
        self._progress.total("read the log", sum(head.n for head in history.log.heads()))
        agent = scope_of(self._settings, self._home.initialize_arguments("cli")).agent
        known.read(history, agent, self._progress.advance)
        history.close()

    def _compared(
        self, db: StateDb, known: HistoryIndex, bus: MemoryBus | None, until: int, elsewhere: int
    ) -> ReconcileReport:
        self._progress.total("compare", db.message_count())
        survey = Survey(
            self._home,
            self._settings,
            db,
            known,
            host=bus.sessions.get if bus else lambda scope, session: None,
            on_rows=self._progress.advance,
        )
        importer = Importer(bus, self._clock, self._progress.waiting) if bus else None
        selection = TurnRange(self._request.since, until, self._request.session)
        for found in survey.sessions(selection):
            self._note(found)
            if importer is not None and not found.is_whole:
                self._import(importer, survey, found)
        entries, refused = self._memories(known, importer, bus)
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

    def _note(self, found: SessionGap) -> None:
        counts = {
            "stored_sessions": 1,
            "stored_turns": found.turns,
            "missing": len(found.missing),
            "recent": found.recent,
            "undone": len(found.undone),
        }
        for name, count in counts.items():
            self._counts[name] += count
        if found.recent or not found.is_whole:
            self._sessions.append(_shown(found))

    def _import(self, importer: Importer, survey: Survey, found: SessionGap) -> None:
        session = importer.begin(found)
        if session is None:
            return
        for turn in survey.turns(found.stored.id, found.missing):
            if importer.turn(session, turn, found.stored.model):
                self._trimmed += turn.trimmed
        if found.undone:
            importer.undo(session, found)
        if found.ends:
            importer.end(session, found)

    def _memories(
        self, known: HistoryIndex, importer: Importer | None, bus: MemoryBus | None
    ) -> tuple[int, list[str]]:
        """Count the entries of memory files that the log lacks, and publish them if asked to."""
        if self._request.session or self._request.since:
            return 0, []
        scope = scope_of(self._settings, self._home.initialize_arguments("cli"))
        entries = memories.missing(self._home, scope, known)
        if importer is None or bus is None:
            return len(entries), []
        return len(entries), memories.publish(bus, scope, entries, importer.paced.publish)


def _shown(found: SessionGap) -> SessionFound:
    return SessionFound(
        session=found.stored.id,
        source=found.stored.source,
        user=found.scope.user,
        started_at=found.stored.started_at,
        origin=found.place.origin,
        parent=found.place.ref.parent,
        turns=found.turns,
        missing=len(found.missing),
        recent=found.recent,
        undone=len(found.undone),
        ended=found.ends,
    )
