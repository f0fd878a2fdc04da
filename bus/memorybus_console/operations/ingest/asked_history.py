"""What an import asks of the history: which turns it has, and whose it may not have any more."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack, closing
from typing import Self

from memorybus.config.settings import Settings
from memorybus.events import Envelope, Scope, SessionRef, TurnCompleted
from memorybus.history.forgotten import NOTHING_FORGOTTEN, Forgotten
from memorybus.history.history import History
from memorybus.redis.connect import connect_redis

from memorybus_console.operations.ingest.stages import OnStage
from memorybus_console.operations.ingest.transcripts.model import RecordedTurn
from memorybus_console.operations.ingest.turn_index import TurnIndex, session_digest
from memorybus_console.operations.ingest.turn_matching import (
    KnownTurn,
    TurnMarks,
    TurnMatch,
    is_end_of,
    is_same_session,
    marks_of_recorded,
    match_turns,
    outgrows,
)


class AskedHistory:
    """The history as one import sees it. Use from one thread; a ``with`` block closes it."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._index = self._open.enter_context(TurnIndex())
        self._history: History | None = None
        self.forgotten = NOTHING_FORGOTTEN

    def ask(self, settings: Settings, scopes: Collection[Scope], on_stage: OnStage) -> None:
        """Read the tombstones, and the turns of some owners, in one pass over the history.

        Raises:
            LogUnavailable: Redis does not answer.
            ArchiveError: a part of the archive cannot be read; its turns would seem new.
        """
        redis = self._open.enter_context(closing(connect_redis(settings)))
        self._history = self._open.enter_context(closing(History.from_settings(redis, settings)))
        self.forgotten = Forgotten(self._history.forgotten_queries())
        if any(head.n for head in self._history.log.heads()):
            with on_stage("compare with the history", "events", None) as step:
                self._index.read(self._history, scopes, step)

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the index, and close the history."""
        self._open.close()

    def ref(self, scope: Scope, session: str) -> SessionRef | None:
        """Return a session's place in its lineage; None if the history does not know it."""
        return self._index.ref(scope, session)

    def next_ordinal(self, scope: Scope, session: str) -> int:
        """Return the number after that of a session's last turn; 0 if it has none."""
        return self._index.next_ordinal(scope, session)

    def match(
        self,
        scope: Scope,
        session: str,
        turns: Sequence[RecordedTurn],
        *,
        named: bool,
        beside: Iterable[str] = (),
    ) -> list[TurnMatch]:
        """Return for each turn of a session whether the history has it.

        Args:
            scope: its owner.
            session: its id.
            named: whether its source names it; else the id is made of the file's name.
            beside: the other sessions of the same input, which are not this one.
        """
        marks = [marks_of_recorded(turn) for turn in turns]
        others = {session_digest(scope, one) for one in beside} if named else frozenset()
        known = self._known_turns(scope, session, marks, others, named=named)
        matches = match_turns(known, marks)
        return [self._judge(*pair) for pair in zip(turns, matches, strict=True)]

    def _known_turns(
        self,
        scope: Scope,
        session: str,
        marks: Sequence[TurnMarks],
        others: Collection[bytes],
        *,
        named: bool,
    ) -> list[KnownTurn]:
        """Return the turns of a session, also if the history has it under another name."""
        own = session_digest(scope, session)
        known = self._index.turns(own)
        if known and named:
            return known
        for other in self._index.sessions_with(scope, marks):
            if other != own and other not in others:
                turns = self._index.turns(other)
                known += turns if is_same_session(turns, marks, named=named) else ()
        return known

    def _judge(self, turn: RecordedTurn, match: TurnMatch) -> TurnMatch:
        """Compare the texts of a turn with those of another form that the history has."""
        if match.known is None or match.verdict == "known":
            return match
        envelope = self.envelope(match.known)
        event = envelope.event if envelope else None
        if not isinstance(event, TurnCompleted):
            return TurnMatch("known", match.known)
        if match.verdict == "answer":
            return TurnMatch("known", match.known) if is_end_of(turn, event) else TurnMatch("new")
        return match if outgrows(turn, event) else TurnMatch("known", match.known)

    def envelope(self, known: KnownTurn) -> Envelope | None:
        """Return the event of a turn of the history; None if it is there no more."""
        logged = self._history and self._history.event_at(known.partition, known.entry)
        return logged.envelope if logged else None
