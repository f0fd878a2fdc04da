"""LangGraph's store on the bus: what a graph keeps of a person, as writes to their memory."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec
from memorybus import KeyHistory, MemoryBus, Session, store_key
from memorybus.errors import LogUnavailable, install_command
from memorybus.events import Envelope, MemoryWritten
from memorybus.ids import text_digest
from memorybus.msgspec_types import prepared

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        validate_op_namespace,
    )
    from langgraph.store.base.embed import get_text_at_path
except ImportError as error:
    remedy = install_command("langgraph")
    raise ImportError(f"LangGraph is missing ({error}); run: {remedy}") from error

_Place: TypeAlias = tuple[tuple[str, ...], str]
"""A namespace and a key in it."""

_NAME = "langgraph-store"
"""The session of a person's writes."""

_MARK = "langgraph"
"""The key of a write's provenance under which the stored item is."""

_BUDGET = 32_000
"""Characters that a search may recall: other memories of the person are among them."""

_OPERATORS = MappingProxyType({
    "$eq": operator.eq, "$ne": operator.ne, "$gt": operator.gt, "$gte": operator.ge,
    "$lt": operator.lt, "$lte": operator.le,
})  # fmt: skip


class _Stored(msgspec.Struct, frozen=True):
    """An item as a write carries it; `value` is None where it was deleted."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any] | None


class _Entry(msgspec.Struct, frozen=True):
    """What stands at a place: the last write, its value and text, and times in milliseconds."""

    event_id: str
    value: dict[str, Any] | None
    text: str
    created: int
    updated: int


class _Person:
    """The items of one person."""

    def __init__(self, bus: MemoryBus, session: Session) -> None:
        self.session = session
        self.lock = threading.RLock()
        key = store_key("user", session.scope)
        self._past = KeyHistory(bus, key, session.scope, (MemoryWritten.__name__,))

    def entries(self) -> dict[_Place, _Entry]:
        """Return the newest write of each place, deletions included."""
        with self.lock:
            return _fold(self._past.events())

    def put(self, op: PutOp) -> None:
        """Publish a write, unless it changes nothing: a node that runs again repeats its writes."""
        with self.lock:
            entries = self.entries()
            old = entries.get((op.namespace, op.key))
            value = None if op.value is None else dict(op.value)
            if value == (old.value if old else None):
                return
            text, old_text = _text_of(op), old.text if old else ""
            alike = [e for e in entries.values() if old_text and e.text == old_text]
            if len(alike) > 1:  # another item says the same: its text stays with the providers
                text, old_text = (text, "") if text else (old_text, old_text)
            stored = msgspec.json.encode(_Stored(op.namespace, op.key, value)).decode()
            mark = ("put", text_digest(stored), old.event_id if old else "")
            self.session.memory_written(
                "remove" if not text else "replace" if old_text else "add",
                text,
                store="user",
                old_text=old_text,
                provenance={_MARK: stored},
                event_id=self.session.event_id(*mark),
            )


class MemoryStore(BaseStore):
    """LangGraph's long-term store. A namespace begins with labels that name the person.

    Args:
        bus: the bus.
        namespace: how each namespace begins; ``{user}`` stands for the person, whose memories no
            namespace of another person reaches.
        agent: the agent's identity. If it or the next one is None, the settings give it.
        workspace: the project or team.
        timeout: the most seconds that a search by meaning waits for the providers.
    """

    def __init__(
        self,
        bus: MemoryBus,
        *,
        namespace: Sequence[str] = ("{user}",),
        agent: str | None = None,
        workspace: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        if "{user}" not in namespace:
            raise InvalidNamespaceError(f"{namespace!r} names no person: it has no '{{user}}'")
        self._bus = bus
        self._pattern = tuple(namespace)
        self._timeout = timeout

        def open_person(user: str) -> _Person:
            session = bus.session(_NAME, agent=agent, user=user, workspace=workspace, warm=False)
            return _Person(bus, session)

        self._person = lru_cache(maxsize=256)(open_person)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does, on a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: reads see what stood before; of a place's writes the last counts.

        Raises:
            InvalidNamespaceError: a namespace is not valid, or names no person.
            LogError: the log cannot be read.
        """
        ops = list(ops)
        for op in ops:
            validate_op_namespace(op)
            self._find(op)
        results = [None if isinstance(op, PutOp) else self._read(op) for op in ops]
        for write in {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}.values():
            if write.ttl is not None:
                raise NotImplementedError("memorybus has no ttl for one item; see `retention`")
            self._find(write).put(write)
        return results

    def _find(self, op: Op) -> _Person:
        """Return the person that an operation names; one that may concern several is refused."""
        if isinstance(op, ListNamespacesOp):
            starts = [c.path for c in op.match_conditions or () if c.match_type == "prefix"]
            namespace: tuple[str, ...] = max(starts, key=len, default=())
        else:
            namespace = op.namespace_prefix if isinstance(op, SearchOp) else op.namespace
        head = namespace[: len(self._pattern)]
        user = dict(zip(self._pattern, head, strict=False)).get("{user}", "*")
        if user == "*" or head != tuple(n.replace("{user}", user) for n in self._pattern):
            raise InvalidNamespaceError(
                f"{tuple(namespace)!r} names no person: begin it with {self._pattern!r}"
            )
        return self._person(user)

    def _read(self, op: GetOp | SearchOp | ListNamespacesOp) -> Result:
        person = self._find(op)
        entries = {place: e for place, e in person.entries().items() if e.value is not None}
        if isinstance(op, GetOp):
            entry = entries.get((op.namespace, op.key))
            return Item(**_fields((op.namespace, op.key), entry)) if entry else None
        if isinstance(op, SearchOp):
            return self._search(op, person.session, entries)
        found = {namespace for namespace, _ in entries if _fits(op, namespace)}
        return sorted({n[: op.max_depth] for n in found})[op.offset :][: op.limit]

    def _search(
        self, op: SearchOp, session: Session, entries: Mapping[_Place, _Entry]
    ) -> list[SearchItem]:
        """Return what has to do with the query, best first; without one, the newest first."""
        scores = self._scores(op.query, session) if op.query else {}
        order = list(scores)
        found = []
        for place, entry in entries.items():
            name = entry.event_id if entry.event_id in scores else entry.text
            if _wanted(op, place, entry) and (name in scores or not op.query):
                rank = order.index(name) if op.query else -entry.updated
                found.append(
                    (rank, place, SearchItem(**_fields(place, entry), score=scores.get(name)))
                )
        found.sort(key=lambda hit: hit[:2])
        return [item for _, _, item in found[op.offset :][: op.limit]]

    def _scores(self, query: str, session: Session) -> dict[str, float]:
        """Return what the providers recall, best first, by its event and by its text."""
        scope = session.scope
        answer = self._bus.recall(
            query,
            agent=scope.agent,
            user=scope.user,
            workspace=scope.workspace,
            budget=_BUDGET,
            timeout=self._timeout,
        )
        if answer.missing and not answer.results:
            raise LogUnavailable(f"no provider answered: {answer.missing}")
        return {name: r.score for r in answer.results for name in (r.event, r.text) if name}


def _fold(events: Iterable[Envelope]) -> dict[_Place, _Entry]:
    """Return the newest entry of each place; a write by others removes what it names."""
    entries: dict[_Place, _Entry] = {}
    for envelope in events:
        event, at = envelope.event, envelope.at
        if not isinstance(event, MemoryWritten):
            continue
        if mark := event.provenance.get(_MARK):
            stored = msgspec.json.decode(mark, type=prepared(_Stored))
            place = (stored.namespace, stored.key)
            old = entries.get(place)
            created = old.created if old and old.value is not None else at
            text = event.content if stored.value is not None else ""
            entries[place] = _Entry(envelope.id, stored.value, text, created, at)
        elif event.action != "add" and event.old_text.strip():
            for place, entry in entries.items():
                if entry.value is not None and event.old_text in entry.text:
                    entries[place] = _Entry(envelope.id, None, "", entry.created, at)
    return entries


def _text_of(op: PutOp) -> str:
    """Return what the providers remember of a value: its indexed fields, or all of them."""
    if op.value is None:
        return ""
    texts = {name: ", ".join(get_text_at_path(op.value, name)) for name in op.index or op.value}
    alone = len(texts) == 1 or op.index
    parts = texts.values() if alone else (f"{name}: {text}" for name, text in texts.items())
    return "; ".join(part for part in parts if part) or msgspec.json.encode(op.value).decode()


def _fields(place: _Place, entry: _Entry) -> dict[str, Any]:
    created, updated = (
        datetime.fromtimestamp(at / 1000, UTC) for at in (entry.created, entry.updated)
    )
    times = {"created_at": created, "updated_at": updated}
    return {"namespace": place[0], "key": place[1], "value": entry.value, **times}


def _wanted(op: SearchOp, place: _Place, entry: _Entry) -> bool:
    value = entry.value or {}
    inside = place[0][: len(op.namespace_prefix)] == op.namespace_prefix
    return inside and all(_satisfies(value.get(n), test) for n, test in (op.filter or {}).items())


def _satisfies(value: Any, test: Any) -> bool:
    if isinstance(test, Mapping) and test.keys() <= _OPERATORS.keys():
        return all(_OPERATORS[name](value, other) for name, other in test.items())
    return bool(value == test)


def _fits(op: ListNamespacesOp, namespace: tuple[str, ...]) -> bool:
    """Whether a namespace has each start and end that is wanted; ``*`` is any label."""
    for match_type, path in op.match_conditions or ():
        part = namespace[: len(path)] if match_type == "prefix" else namespace[-len(path) :]
        if len(part) < len(path) or any(
            w not in ("*", label) for w, label in zip(path, part, strict=True)
        ):
            return False
    return True
