"""Writes what was said (see `remembering.utterances`) in the order of each session."""

from collections.abc import Iterable, Sequence

from memorybus_providers.base import HookContext
from memorybus_providers.language.words import folded
from memorybus_providers.postgres.link import Connection
from memorybus_providers.postgres.texts import LONGEST_NAME, decode_text, encode_text
from memorybus_providers.postgres.writing import index
from memorybus_providers.postgres.writing.curations import forgotten_names
from memorybus_providers.postgres.writing.index import NewFact
from memorybus_providers.postgres.writing.places import PlaceNames, PlaceRows, Places, place_names
from memorybus_providers.ranking import facts
from memorybus_providers.ranking.facts import clean, pool_of
from memorybus_providers.remembering.utterances import (
    Piece,
    Utterance,
    numbered_passages,
    unsaid_passages,
)

_NUMBERED = """
update sessions set said = said + added.count, answers = sessions.answers + added.long
from unnest(%s::bigint[], %s::int[], %s::int[]) as added(id, count, long)
where sessions.id = added.id
returning sessions.id, (
    select coalesce(max(seq) + 1, 0) from facts
    where facts.session = sessions.id and seq is not null
)
"""
_SPEAKERS = """
insert into speakers select * from unnest(%s::bigint[], %s::text[], %s::text[])
on conflict do nothing
"""
_LINEAGE = """
select content from facts
where session in (select id from sessions where scope = %s and root = %s) and seq is not null
"""
_RETRACTED = """
select id, session, kind, content from facts
where session in (select id from sessions where scope = %s and root = %s) and seq is not null
    and event_id = any(%s)
"""
_REPEATED = """
select id, session, kind, content from facts
where session in (select id from sessions where scope = %s and root = %s) and seq is not null
    and kind = 'compression' and content = any(%s)
"""
_CALLED = """
select id, session, kind, content from facts
where scope = %s and name = %s and seq is not null
"""
_FEWER = """
update sessions set said = said - gone.count, answers = sessions.answers - gone.long
from unnest(%s::bigint[], %s::int[], %s::int[]) as gone(id, count, long)
where sessions.id = gone.id
"""

_Pending = tuple[PlaceNames, HookContext, Piece]


class PostgresUtterances:
    """Writes utterances in the transaction that `db` has open.

    They wait in memory until `flush`, which writes all of them in a fixed number of round trips.
    """

    def __init__(self, db: Connection, places: Places) -> None:
        self._db = db
        self._places = places
        self._pending: list[_Pending] = []
        self._speakers: set[tuple[PlaceNames, str]] = set()

    def flush(self) -> None:
        """Write pending utterances and speakers; needed before commits and reads."""
        pending, self._pending = self._pending, []
        speakers, self._speakers = self._speakers, set()
        if not pending and not speakers:
            return
        asked = {one[0] for one in pending} | {speaker[0] for speaker in speakers}
        found = self._places.get_all(self._db, asked)
        if speakers:
            rows = sorted({row for one, name in speakers for row in _words(found[one], name)})
            if rows:
                self._db.execute(_SPEAKERS, [list(column) for column in zip(*rows, strict=True)])
        if pending:
            self._insert([(found[at], ctx, piece) for at, ctx, piece in pending])

    def append(self, utterances: Iterable[Utterance], ctx: HookContext) -> None:
        """Append an event's utterances to its session, verbatim; blank ones are left out."""
        self._append(numbered_passages(utterances), ctx)

    def append_unsaid(self, utterances: Iterable[Utterance], ctx: HookContext) -> None:
        """Append the utterances that the lineage has not stored yet: a compression repeats turns.

        Pending utterances must have been flushed.
        """
        lineage = self._lineage(ctx)
        before = (decode_text(row[0]) for row in self._db.execute(_LINEAGE, lineage).fetchall())
        self._append(unsaid_passages(utterances, before), ctx)

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Delete what was said in these events of the context's lineage.

        Passages of a compression that repeat it are deleted, too. Pending utterances must have been
        flushed.
        """
        lineage = self._lineage(ctx)
        events = [bytes.fromhex(event_id) for event_id in event_ids]
        gone = self._db.execute(_RETRACTED, (*lineage, events)).fetchall()
        self._remove(gone)
        texts = list({text for *_, text in gone})
        if texts:
            self._remove(self._db.execute(_REPEATED, (*lineage, texts)).fetchall())

    def forget_name(self, name: str, ctx: HookContext) -> None:
        """Delete what was said under a name. Pending utterances must have been flushed."""
        given = (self._places.get(self._db, ctx).scope, encode_text(name))
        self._remove(self._db.execute(_CALLED, given).fetchall())

    def add_speaker(self, name: str, ctx: HookContext) -> None:
        """Remember a speaker of the context's scope, with one row per word of the name."""
        if name:
            self._speakers.add((place_names(ctx), clean(name)))

    def _lineage(self, ctx: HookContext) -> tuple[int, str]:
        return self._places.get(self._db, ctx).scope, encode_text(ctx.session.root)

    def _append(self, pieces: Iterable[Piece], ctx: HookContext) -> None:
        place = place_names(ctx)
        self._pending += [(place, ctx, piece) for piece in pieces]

    def _insert(self, said: Sequence[tuple[PlaceRows, HookContext, Piece]]) -> None:
        gone = forgotten_names(self._db, {(one[0].scope, _name(*one)) for one in said})
        if gone:
            said = [one for one in said if (one[0].scope, _name(*one)) not in gone]
        given = _counts((place.session, piece[1].kind) for place, _, piece in said)
        with self._db.pipeline():
            numbered = self._db.execute(_NUMBERED, given)
            new = self._db.execute(index.NUMBERS, (len(said),))
        following: dict[int, int] = dict(numbered.fetchall())
        made = []
        for row, (place, ctx, piece) in zip(
            sorted(row[0] for row in new.fetchall()), said, strict=True
        ):
            made.append(_fact(row, following[place.session], place, ctx, piece))
            following[place.session] += 1
        index.insert(self._db, made)

    def _remove(self, gone: Sequence[tuple[int, int, str, str]]) -> None:
        if gone:
            index.remove(self._db, [row[0] for row in gone])
            self._db.execute(_FEWER, _counts((session, kind) for _, session, kind, _ in gone))


def _name(place: PlaceRows, ctx: HookContext, piece: Piece) -> str:
    return facts.name_of_said(place.mark, bytes.fromhex(ctx.event_id), piece[0])


def _fact(row: int, seq: int, place: PlaceRows, ctx: HookContext, piece: Piece) -> NewFact:
    _, said, text = piece
    event_id = bytes.fromhex(ctx.event_id)
    return NewFact(
        id=row,
        scope=place.scope,
        session=place.session,
        seq=seq,
        name=_name(place, ctx, piece),
        event_id=event_id,
        at=ctx.at,
        kind=said.kind,
        speaker=encode_text(said.speaker),
        category="",
        tags=encode_text(said.tags),
        content=encode_text(text),
    )


def _counts(said: Iterable[tuple[int, str]]) -> list[list[int]]:
    """Return sessions, how many facts each has here, and how many of them are of answers."""
    counts: dict[int, list[int]] = {}
    for session, kind in said:
        count = counts.setdefault(session, [0, 0])
        count[0] += 1
        count[1] += pool_of(kind) == "answers"
    rows = sorted((session, *count) for session, count in counts.items())
    return [list(column) for column in zip(*rows, strict=True)]


def _words(place: PlaceRows, name: str) -> list[tuple[int, str, str]]:
    written = encode_text(name)[:LONGEST_NAME]
    return [
        (place.scope, encode_text(word)[:LONGEST_NAME], written) for word in folded(name).split()
    ]
