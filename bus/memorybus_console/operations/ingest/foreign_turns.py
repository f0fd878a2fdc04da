"""Leaves out the turns of an export that the history has, and replaces those that grew."""

from collections.abc import Collection, Iterator, Sequence
from typing import cast

import msgspec
from memorybus.events import Envelope, TurnCompleted
from memorybus.lineage.identity import Identity, identity_of
from memorybus.redis.keys import session_key

from memorybus_console.operations.ingest.asked_history import AskedHistory
from memorybus_console.operations.ingest.transcripts.model import RecordedTurn
from memorybus_console.operations.ingest.turn_matching import (
    KnownTurn,
    TurnMatch,
    replacing_rewind,
    replacing_rewind_id,
)


class NewForms(msgspec.Struct):
    """The events of an export that the history lacks; the counts are of turns."""

    envelopes: list[Envelope] = []
    known: int = 0
    replaced: int = 0


def select_new_forms(
    asked: AskedHistory, envelopes: Sequence[Envelope], untimed: Collection[str]
) -> NewForms:
    """Return the events of an export without the turns that the history has.

    Args:
        asked: what the history has.
        envelopes: the events of the export, in order.
        untimed: the ids of those for which the export gives no time.
    """
    sessions: dict[Identity, list[Envelope]] = {}
    for one in envelopes:
        if isinstance(one.event, TurnCompleted):
            sessions.setdefault(identity_of(one.scope, one.session.id), []).append(one)
    names = {identity.session for identity in sessions}
    matches: dict[str, TurnMatch] = {}
    for turns in sessions.values():
        recorded = [_recorded_turn(one, timed=one.id not in untimed) for one in turns]
        scope, session = turns[0].scope, turns[0].session.id
        found = asked.match(scope, session, recorded, named=True, beside=names)
        matches |= {one.id: match for one, match in zip(turns, found, strict=True)}
    done = NewForms()
    for one in envelopes:
        _add(done, one, matches.get(one.id, TurnMatch("new")))
    return done


def _recorded_turn(envelope: Envelope, *, timed: bool) -> RecordedTurn:
    event = cast("TurnCompleted", envelope.event)
    at = envelope.at if timed else None
    return RecordedTurn(
        user=event.user, assistant=event.assistant, at=at, source_id=event.source_id
    )


def _add(done: NewForms, envelope: Envelope, match: TurnMatch) -> None:
    known = match.known
    if known is None:
        done.envelopes.append(envelope)
    elif match.verdict == "changed":
        done.envelopes += _newer_form(envelope, known)
        done.replaced += 1
    else:
        unfinished = (known.replaces, known.id) if known.unfinished else None
        done.envelopes += [_rewind(envelope, known, *unfinished)] if unfinished else []
        done.known += 1


def _newer_form(envelope: Envelope, known: KnownTurn) -> Iterator[Envelope]:
    """Yield a turn in the place of the known one, and the rewind that takes that one back."""
    event = msgspec.structs.replace(envelope.event, replaces=known.id, ordinal=known.ordinal)
    key = session_key(envelope.scope, known.ref.root)
    yield msgspec.structs.replace(envelope, event=event, session=known.ref, key=key)
    yield _rewind(envelope, known, known.id, envelope.id)


def _rewind(envelope: Envelope, known: KnownTurn, older: str, newer: str) -> Envelope:
    event = replacing_rewind(known.ref.id, older)
    return msgspec.structs.replace(
        envelope,
        id=replacing_rewind_id(older, newer),
        key=session_key(envelope.scope, known.ref.root),
        session=known.ref,
        v=event.version,
        event=event,
    )
