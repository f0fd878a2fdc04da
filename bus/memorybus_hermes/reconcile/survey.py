"""Finds the stored turns that the log lacks, session by session; changes nothing."""

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec
from memorybus import Settings
from memorybus.events import Scope, SessionRef
from memorybus.history.forgotten import NOTHING_FORGOTTEN, Forgotten

from memorybus_hermes.home import HermesHome
from memorybus_hermes.reconcile.history_index import HistoryIndex
from memorybus_hermes.scopes import is_primary, scope_of
from memorybus_hermes.transcripts.state_db import StateDb, StoredMessage, StoredSession
from memorybus_hermes.transcripts.stored_turns import (
    Compacted,
    StoredTurn,
    read_turns,
    read_undone_turns,
)

SessionOrigin = Literal["start", "branch", "compression"]

ENDS_NOTHING = frozenset(("compression", "branched", "resumed_other"))
"""The reasons for which Hermes closes a session's row although the conversation continues."""


class LineagePlace(msgspec.Struct, frozen=True):
    """Where a session stands.

    Attributes:
        family: the id of the first session of its conversation in ``state.db``; sessions of one
            family contain copies of each other's turns. The lineage has another root if the plugin
            was installed in the middle of the conversation.
    """

    ref: SessionRef
    origin: SessionOrigin
    family: str


def origin_of(session: StoredSession, parent: StoredSession | None) -> SessionOrigin | None:
    """Return how a session came from its parent; None for a sub-agent's session.

    The rules are those of ``hermes_state.py``. A branch carries a mark, or its parent was closed as
    branched. The parent of a compression was closed as compressed. Every other child is a
    sub-agent's session.
    """
    if session.delegated:
        return None
    if not session.parent or parent is None:
        return "start"
    closed_before = 0 < parent.ended_at <= session.started_at
    if session.branched or (parent.end_reason == "branched" and closed_before):
        return "branch"
    return "compression" if parent.end_reason == "compression" else None


def find_place(
    session: StoredSession,
    stored: Callable[[str], StoredSession | None],
    known: Callable[[str], SessionRef | None],
) -> LineagePlace | None:
    """Return where a session stands; None for a sub-agent's session.

    Args:
        stored: returns a session of the same ``state.db`` by its id.
        known: returns the place that the log or this host knows of a session. Such a place counts,
            for the session itself and for the sessions it continues.
    """
    origin = origin_of(session, stored(session.parent))
    if origin is None:
        return None
    chain = list(_ancestors(session, stored))
    own = known(session.id)
    ref = own or _new_ref(
        session, origin, [known(earlier.id) for earlier in chain[1:]], chain[-1].id
    )
    return LineagePlace(ref, origin, chain[-1].id)


def _ancestors(
    session: StoredSession, stored: Callable[[str], StoredSession | None]
) -> Iterator[StoredSession]:
    """Yield a session and those it continues, up to the first; stop at a circle of parents."""
    visited: set[str] = set()
    here: StoredSession | None = session
    while here is not None and here.id not in visited:
        visited.add(here.id)
        yield here
        parent = stored(here.parent)
        here = parent if origin_of(here, parent) in {"branch", "compression"} else None


def _new_ref(
    session: StoredSession, origin: SessionOrigin, earlier: list[SessionRef | None], first: str
) -> SessionRef:
    """Return the place of a session that nobody knows yet, behind the sessions it continues."""
    if origin == "start":
        return SessionRef(id=session.id, root=session.id)
    root = next((ref.root for ref in earlier if ref is not None), first)
    return SessionRef(id=session.id, root=root, parent=session.parent)


_MAX_HELD_BACK = 32
"""How many turns are held back for a summary that may follow: Hermes keeps messages before it."""


class TurnRange(msgspec.Struct, frozen=True):
    """Which turns a survey compares; times are milliseconds since the Unix epoch."""

    since: int  # no turn before this time is compared
    until: int  # no turn after this time is compared: a live plugin may be about to publish it
    session: str = ""  # only this session's turns; empty for all sessions


class SessionGap(msgspec.Struct, frozen=True):
    """The differences between a stored session and the log.

    Attributes:
        retracted: those of these rows whose turns the log has retracted although the person did
            not take them back, each with the id of the retracted event.
    """

    stored: StoredSession
    place: LineagePlace
    scope: Scope
    turns: int  # how many turns it has; copies of other sessions' turns do not count
    missing: "array[int]"  # the rows of the turns that the log lacks, ascending
    retracted: dict[int, str]
    recent: int  # how many turns are too young to compare
    forgotten: int  # how many turns the log lacks because their owner was forgotten
    undone: list[str]  # the event ids of turns that the log has although the person undid them
    undone_at: int  # when the last undone turn was stored, milliseconds since the Unix epoch
    is_new: bool
    lacks_end: bool  # whether the session is over and the log lacks its end

    @property
    def needs_end(self) -> bool:
        """Whether to publish its end, which must not come before turns that are too young."""
        return self.lacks_end and not self.recent and (bool(self.missing) or not self.is_new)

    @property
    def is_complete(self) -> bool:
        return not self.missing and not self.undone and not self.needs_end


class Survey:
    """Compares a ``state.db`` with the log.

    Args:
        host: returns the place that this host knows of a session, or None.
        on_rows: called with the number of messages read since the last call.
    """

    def __init__(
        self,
        home: HermesHome,
        settings: Settings,
        db: StateDb,
        index: HistoryIndex,
        *,
        forgotten: Forgotten = NOTHING_FORGOTTEN,
        host: Callable[[Scope, str], SessionRef | None] = lambda scope, session: None,
        on_rows: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._home = home
        self._settings = settings
        self._db = db
        self._known = index
        self._forgotten = forgotten
        self._host = host
        self._on_rows = on_rows
        self.others = 0
        """How many sessions of cron jobs and sub-agents were left out."""

    def sessions(self, selection: TurnRange) -> Iterator[SessionGap]:
        """Yield the gap of every session of the selection, parents before their children.

        Raises:
            StateDbError: the file is damaged.
        """
        family = self._family(selection.session)
        for stored in self._db.sessions():
            arguments = self._home.initialize_arguments(stored.source, stored.user)
            scope = scope_of(self._settings, arguments)
            place = find_place(stored, self._db.session, self._place_lookup(scope))
            if place is None or not is_primary(arguments):
                self.others += 1
            elif not family or place.family == family:
                gap = self._compare_session(stored, place, scope, selection)
                if selection.session in {"", stored.id}:
                    yield gap

    def _family(self, session_id: str) -> str:
        """Return the family of the selected session; "" if all sessions are selected."""
        stored = self._db.session(session_id)
        place = stored and find_place(stored, self._db.session, self._known.session)
        return place.family if place else session_id

    def _place_lookup(self, scope: Scope) -> Callable[[str], SessionRef | None]:
        return lambda one: self._host(scope, one) or self._known.session(one)

    def _compare_session(
        self, stored: StoredSession, place: LineagePlace, scope: Scope, selection: TurnRange
    ) -> SessionGap:
        missing: array[int] = array("q")
        doubtful: dict[int, str] = {}
        turns = recent = forgotten = 0
        for turn in self._originals(stored, place):
            turns += 1
            logged = self._known.take(stored.id, turn.user, turn.assistant)
            if logged is not None and logged.retracted:
                doubtful[turn.row] = logged.event
            elif logged is not None:
                continue
            elif turn.at > selection.until:
                recent += 1
            elif self._forgotten.hides(scope, stored.id, turn.at):
                forgotten += 1
            elif turn.at >= selection.since:
                missing.append(turn.row)
        lacking = self._without_near_matches(stored, missing, doubtful)
        retracted = self._wrongly_retracted(stored, doubtful, selection)
        undone, undone_at = self._find_undone(stored, selection)
        return SessionGap(
            stored=stored,
            place=place,
            scope=scope,
            turns=turns,
            missing=array("q", sorted((*lacking, *retracted))),
            retracted=retracted,
            recent=recent,
            forgotten=forgotten,
            undone=undone,
            undone_at=undone_at,
            is_new=self._known.session(stored.id) is None
            and not self._forgotten.hides(scope, stored.id, stored.started_at),
            lacks_end=self._lacks_end(stored, selection)
            and not self._forgotten.hides(scope, stored.id, stored.ended_at),
        )

    def _originals(self, stored: StoredSession, place: LineagePlace) -> Iterator[StoredTurn]:
        def first_seen(turn: StoredTurn) -> bool:
            return self._known.first_seen(place.family, turn.user, turn.assistant)

        turns = read_turns(self._read_rows(stored.id), self._settings.event_max_bytes)
        return without_copies(turns, first_seen, continued=place.origin != "start")

    def _read_rows(self, session_id: str) -> Iterator[StoredMessage]:
        for row in self._db.rows(session_id):
            self._on_rows(1)
            yield row

    def _without_near_matches(
        self, stored: StoredSession, missing: "array[int]", doubtful: dict[int, str]
    ) -> "array[int]":
        """Leave out turns that the log has masked or with another answer, after exact matches.

        Masked copies that are retracted are added to `doubtful`.
        """
        if not missing or not self._known.has_left(stored.id):
            return missing
        lacking = array("q")
        for turn in self.turns(stored.id, missing):
            copy = self._known.take_masked(stored.id, turn.user, turn.assistant)
            if copy is not None and copy.retracted:
                doubtful[turn.row] = copy.event
            elif copy is None and not self._known.take_near(stored.id, turn.user, turn.at):
                lacking.append(turn.row)
        return lacking

    def _wrongly_retracted(
        self, stored: StoredSession, doubtful: dict[int, str], selection: TurnRange
    ) -> dict[int, str]:
        """Return those of the retracted turns that the person did not take back.

        As many turns of the same words as the person took back, also after a compression into
        another session, are rightly retracted; 0.19 keeps a copy of each that seems to stand.
        """
        if not doubtful:
            return {}
        room = self._settings.event_max_bytes
        undone = Counter(
            (turn.user, turn.assistant)
            for session in self._continuations(stored)
            for turn in read_undone_turns(self._db.rows(session.id), room)
        )
        turns = {}
        for turn in self.turns(stored.id, array("q", sorted(doubtful))):
            pair = (turn.user, turn.assistant)
            undone.setdefault(pair, 0)
            wrong = max(1, self._known.retracted(stored.id, *pair)) > undone[pair]
            if wrong and selection.since <= turn.at <= selection.until:
                turns[turn.row] = doubtful[turn.row]
                undone[pair] += 1
        return turns

    def _continuations(self, stored: StoredSession) -> Iterator[StoredSession]:
        yield stored
        for child in self._db.children(stored.id):
            if origin_of(child, stored) == "compression":
                yield from self._continuations(child)

    def _find_undone(self, stored: StoredSession, selection: TurnRange) -> tuple[list[str], int]:
        """Return the event ids of undone turns that the log has, and the last turn's time."""
        if not self._known.has_left(stored.id):
            return [], 0
        room = self._settings.event_max_bytes
        turns = [
            (turn.user, turn.assistant, turn.at)
            for turn in read_undone_turns(self._db.rows(stored.id), room)
            if selection.since <= turn.at <= selection.until
        ]
        return self._known.undone(stored.id, turns), max((at for *_, at in turns), default=0)

    def _lacks_end(self, stored: StoredSession, selection: TurnRange) -> bool:
        over = stored.ended_at and stored.end_reason not in ENDS_NOTHING
        when = selection.since <= stored.ended_at <= selection.until
        return bool(over and when and not self._known.ended(stored.id))

    def turns(self, session_id: str, rows: "array[int]") -> Iterator[StoredTurn]:
        """Yield the turns of a session that begin at the given rows, which are ascending.

        Raises:
            StateDbError: the file is damaged.
        """
        wanted = iter(rows)
        row = next(wanted, None)
        for turn in read_turns(self._db.rows(session_id), self._settings.event_max_bytes):
            if isinstance(turn, StoredTurn) and turn.row == row:
                yield turn
                row = next(wanted, None)


# -- copies ----------------------------------------------------------------------------------------
# A branch begins with a copy of the whole conversation. After a compression Hermes stores the first
# messages, a summary and the last messages anew, under the same session id or another. Where copies
# may stand, a turn that its family of sessions had before counts as a copy, and the first turn that
# the family did not have ends the copies. Everywhere else a person may say the same thing twice.


def without_copies(
    read: Iterable[StoredTurn | Compacted],
    first_seen: Callable[[StoredTurn], bool],
    *,
    continued: bool,
) -> Iterator[StoredTurn]:
    """Yield the turns that are not copies, in order.

    Args:
        read: a session's turns, and the places where it was compressed.
        first_seen: says whether a turn is the first of its kind in the family, and notes it.
        continued: whether the session continues another one, so that it begins with copies.
    """
    copying = continued
    held_back: deque[StoredTurn] = deque()
    for item in read:
        if isinstance(item, Compacted):
            held_back.clear()
            copying = True
        elif first_seen(item):
            copying = False
            yield from held_back
            held_back.clear()
            yield item
        elif not copying:
            held_back.append(item)
            if len(held_back) > _MAX_HELD_BACK:
                yield held_back.popleft()
    yield from held_back
