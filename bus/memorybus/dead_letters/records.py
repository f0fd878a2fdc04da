"""Dead letters: events that a provider refused finally, and the later events of their keys (G6).

The record in Redis refers to the log, and the event itself stays there. A refusal after a retry and
an operator's edit are stored in addition to the record, since a stream entry cannot be changed. The
reasons are in docs/decisions/delivery.md.

Operators' requests are records, too. Only a lane's owner may apply its events or change its dead
letters (G5). So a command writes requests into one hash per provider, and waits until the owners
have carried them out and removed them. A request has an id and never changes. Carrying it out a
second time has no effect.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeVar, cast

import msgspec
from redis import Redis

from memorybus.errors import InvalidEvent, MemoryBusError
from memorybus.events import AnyEvent, KnownEvent, Scope, UnknownEvent
from memorybus.ids import text_digest
from memorybus.log.entry import entry_ms, parse_entry_id
from memorybus.log.stream import read_entries
from memorybus.msgspec_types import prepared
from memorybus.redis.hashes import decode_or_none
from memorybus.redis.keys import Keys, lane_name

START = "0-0"
PAGE = 500

UNREADABLE = (
    "what became of it since it was put aside is written in a form that this release cannot read: "
    "retry it with the release that wrote it, edit it, or discard it"
)

NAME_CHARS = 200


class DeadLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record in the dead-letter stream (JSON). All but the key is bounded (G10)."""

    event_id: str  # the envelope's id
    entry: str  # the entry of the partition's log that has the event
    n: int  # its dense number
    key: str  # its order key
    type: str  # the event's type
    reason: str  # why it was parked; masked, at most `redact.REASON_CHARS` long
    # how often it was tried; 0 if it only waits behind the first letter of its key
    attempts: int = 0
    scope: Scope = Scope()  # its owner; each name is at most `NAME_CHARS` long
    session: str = ""  # the session's id, also at most `NAME_CHARS` long
    at: int = 0  # when it happened, milliseconds since the Unix epoch
    first_at: int = 0  # when it was refused first (ms); 0 if it only waits
    last_at: int = 0  # when it was refused last (ms)
    # the end of the traceback, without values of variables; masked, at most `redact.TRACE_CHARS`
    # long
    trace: str = ""
    worker: str = ""  # the worker that parked it

    @property
    def refused(self) -> bool:
        """Whether it was tried itself, and does not only wait behind another letter."""
        return self.attempts > 0


class Amendment(msgspec.Struct, frozen=True, omit_defaults=True):
    """The changes of a dead letter since it was parked (JSON, by its place in the log)."""

    reason: str = ""  # why it was refused last; empty if only edited
    attempts: int = 0  # how often it was tried in all
    first_at: int = 0  # when it was refused first (ms)
    last_at: int = 0  # when it was refused last (ms)
    trace: str = ""  # the last traceback, bounded as in `DeadLetter`
    # the event with which an operator replaced it for this provider, as JSON fields
    edited: dict[str, Any] | None = None
    request: str = ""  # the request that brought the edit; the same request changes nothing again
    # The request for which it is being applied again. If another worker finds this, the worker that
    # tried it died meanwhile.
    trying: str = ""
    by: str = ""  # the worker that is trying it


def apply_amendment(letter: DeadLetter, amendment: Amendment) -> DeadLetter:
    if not amendment.attempts:
        return letter
    return msgspec.structs.replace(
        letter,
        reason=amendment.reason,
        attempts=amendment.attempts,
        first_at=amendment.first_at,
        last_at=amendment.last_at,
        trace=amendment.trace,
    )


def bound_scope(scope: Scope) -> Scope:
    """Return a scope whose names are at most `NAME_CHARS` long."""
    names = (scope.agent, scope.user, scope.workspace, scope.platform)
    return Scope(*(name[:NAME_CHARS] for name in names))


_VARIABLE = re.compile(r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|\b(?=\w*\d)[\w-]+\b")
"""The parts in which two errors of one kind may differ: quoted texts, and words with digits."""


def group_of(provider: str, reason: str) -> str:
    """Return the short id of an error group: reasons that differ only in names share it."""
    return text_digest(f"{provider}\x00{normalise_reason(reason)}")[:8]


def normalise_reason(reason: str) -> str:
    """Return a reason without the names of one event: ``key 'a7' in use`` is ``key … in use``."""
    return _VARIABLE.sub("…", reason)


def edit_event(event: AnyEvent, fields: dict[str, Any]) -> KnownEvent:
    """Return an event of the same type with other fields; fields that are missing get defaults."""
    kind = type(event)
    if kind is UnknownEvent:
        raise InvalidEvent("an event of a type that this release does not know cannot be edited")
    strange = sorted(fields.keys() - {*kind.__struct_fields__, "type"})
    if strange:
        raise InvalidEvent(f"{kind.__name__} has no field {', '.join(map(repr, strange))}")
    try:
        made = msgspec.convert(fields, prepared(kind))
        msgspec.msgpack.encode(made)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise InvalidEvent(f"not a {kind.__name__}: {error}") from error
    return cast("KnownEvent", made)


class StoredLetter(msgspec.Struct, frozen=True):
    """A dead letter in its present state."""

    id: str  # its id in the lane's dead-letter stream
    letter: DeadLetter  # the record, with the last refusal
    amendment: Amendment | None = None  # its changes since it was parked; None if there are none
    strange: bool = False  # whether this release cannot read its changes, which may be an edit


class LetterBox:
    """The dead letters of one lane in Redis. Every method raises what redis-py raises."""

    def __init__(self, redis: Redis, keys: Keys, partition: int, provider: str) -> None:
        self.partition = partition
        self.provider = provider
        self._redis = redis
        self._dead = keys.dead(partition, provider)
        self._amended = keys.amended(partition, provider)

    def page(self, after: str = START, count: int = PAGE) -> list[StoredLetter]:
        """Return up to `count` dead letters after an id, in the order in which they were parked."""
        return self._load_letters(read_entries(self._redis, self._dead, f"({after}", count=count))

    def letter(self, letter_id: str) -> StoredLetter | None:
        entries = read_entries(self._redis, self._dead, letter_id, letter_id)
        return next(iter(self._load_letters(entries)), None)

    def letter_at(self, entry: str) -> StoredLetter | None:
        """Return the dead letter of the event at an entry of the log; None if there is none."""
        since = f"{entry_ms(entry)}-0"
        return self._find_between(entry, f"({since}", "+") or self._find_between(entry, "-", since)

    def _find_between(self, entry: str, first: str, last: str) -> StoredLetter | None:
        named = entry.encode()
        while page := read_entries(self._redis, self._dead, first, last, count=PAGE):
            likely = [one for one in page if any(named in value for value in one[1])]
            for stored in self._load_letters(likely):
                if stored.letter.entry == entry:
                    return stored
            first = f"({page[-1][0].decode()}"
        return None

    def _load_letters(self, found: Sequence[tuple[bytes, list[bytes]]]) -> list[StoredLetter]:
        records = [(name.decode(), _decode_record(name.decode(), fields)) for name, fields in found]
        entries = [letter.entry for _, letter in records]
        bodies: Any = self._redis.hmget(self._amended, entries) if entries else []
        return [
            _stored_letter(name, letter, body)
            for (name, letter), body in zip(records, bodies, strict=True)
        ]

    def all(self) -> Iterator[StoredLetter]:
        after = START
        while page := self.page(after):
            yield from page
            after = page[-1].id


def _stored_letter(name: str, letter: DeadLetter, body: bytes | None) -> StoredLetter:
    if body is None:
        return StoredLetter(name, letter)
    try:
        amendment = msgspec.json.decode(body, type=prepared(Amendment))
    except msgspec.MsgspecError:
        return StoredLetter(name, msgspec.structs.replace(letter, reason=UNREADABLE), strange=True)
    return StoredLetter(name, apply_amendment(letter, amendment), amendment)


def _decode_record(name: str, fields: Sequence[bytes]) -> DeadLetter:
    """Decode a record; one that is not ours becomes a letter with a key that no event has."""
    try:
        body = dict(zip(fields[::2], fields[1::2], strict=False))[b"r"]
        letter = msgspec.json.decode(body, type=prepared(DeadLetter))
        parse_entry_id(letter.entry)
    except (KeyError, ValueError, msgspec.MsgspecError):
        why = "a record that memorybus did not write"
        return DeadLetter("", START, 0, f"stray:{name}", "", why, attempts=1)
    return letter


MAX_REQUESTS = 256  # the most requests that may wait for one provider (G10); more are refused
MAX_ITEMS = 500  # the most keys or letters in one request; `split_items` makes several requests
_FIELD = re.compile(rb"p(\d{2,6}):[0-9a-f]{32}")
T = TypeVar("T")


class TooManyRequests(MemoryBusError):
    """More requests about a provider's dead letters were sent than may wait."""


class LetterRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """An operator's request about dead letters of one lane."""

    id: str  # the id of this request (32 hex digits, sorted by time)
    partition: int  # the lane's partition
    # "retry" applies the letters of `keys`, in order, until one is refused again; "discard" removes
    # the letters at `entries`; "edit" puts `event` in the place of the one at `entries[0]`. After
    # the last two, their key is also applied in order, unless an earlier letter of it waits.
    action: Literal["retry", "discard", "edit"]
    keys: tuple[str, ...] = ()  # order keys, for "retry"
    entries: tuple[str, ...] = ()  # places in the log, for "discard" and "edit"
    event: dict[str, Any] = {}  # the fields of the new event, for "edit"
    reason: str = ""  # why, in the operator's words
    operator: str = ""  # who asks, as ``user@host``
    at: int = 0  # when it was asked, milliseconds since the Unix epoch

    @property
    def field(self) -> str:
        """Its field in the hash; it names the lane, so that owners read only their requests."""
        return f"{lane_name(self.partition)}:{self.id}"


class LetterRequests:
    """The waiting requests of one provider. Every method raises what redis-py raises."""

    def __init__(self, redis: Redis, keys: Keys, provider: str) -> None:
        self._redis = redis
        self._key = keys.redo(provider)

    def waiting_fields(self) -> dict[str, int]:
        """Return the partition of every request that waits, by its field; one round trip."""
        fields: Any = self._redis.hkeys(self._key)
        matches = ((field, _FIELD.fullmatch(field)) for field in fields)
        return {field.decode(): int(match[1]) for field, match in matches if match}

    def read(self, fields: Sequence[str]) -> list[LetterRequest | None]:
        raw: Any = self._redis.hmget(self._key, fields) if fields else []
        return [decode_or_none(body, LetterRequest) for body in raw]

    def send(self, requests: Sequence[LetterRequest]) -> None:
        waiting: Any = self._redis.hlen(self._key)
        if waiting + len(requests) > MAX_REQUESTS:
            raise TooManyRequests(
                f"{len(requests)} requests on top of {waiting} that wait are more than "
                f"{MAX_REQUESTS}: select less at once, or let a worker carry out what waits"
            )
        if requests:
            bodies: Any = {request.field: msgspec.json.encode(request) for request in requests}
            self._redis.hset(self._key, mapping=bodies)

    def remove(self, fields: Iterable[str]) -> None:
        self._redis.hdel(self._key, *fields)


def split_items(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Split items into parts of at most `MAX_ITEMS`, each of which fits one request."""
    return (tuple(items[i : i + MAX_ITEMS]) for i in range(0, len(items), MAX_ITEMS))
