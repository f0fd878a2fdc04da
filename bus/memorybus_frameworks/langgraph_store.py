"""LangGraph's store on the bus: what a graph keeps of a person, as writes to their memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec
from memorybus import KeyHistory, MemoryBus, Session, store_key
from memorybus.errors import LogUnavailable
from memorybus.events import MemoryWritten
from memorybus.ids import text_digest

from memorybus_frameworks import naming_extra
from memorybus_frameworks.langgraph_items import MARK, StandingItems, StoredItem, fold, ranked

with naming_extra("LangGraph", "langgraph"):
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
    from langgraph.store.memory import InMemoryStore

_NAME = "langgraph-store"
"""The session of a person's writes."""

_BUDGET = 32_000
"""Characters that a search may recall: other memories of the person are among them."""


class _Person:
    """The items of one person."""

    def __init__(self, bus: MemoryBus, session: Session) -> None:
        self.session = session
        self.lock = threading.RLock()
        key = store_key("user", session.scope)
        self._past = KeyHistory(bus, key, session.scope, (MemoryWritten.__name__,))

    def entries(self) -> StandingItems:
        """Return the newest write of each place, deletions included."""
        with self.lock:
            return fold(self._past.events())

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
            stored = msgspec.json.encode(StoredItem(op.namespace, op.key, value)).decode()
            mark = ("put", text_digest(stored), old.event_id if old else "")
            self.session.memory_written(
                "remove" if not text else "replace" if old_text else "add",
                text,
                store="user",
                old_text=old_text,
                provenance={MARK: stored},
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
            place = op.namespace, op.key
            return Item(**entries[place].fields(place)) if place in entries else None
        standing = InMemoryStore()  # LangGraph's own filters
        standing.batch([PutOp(*place, entry.value) for place, entry in entries.items()])
        if isinstance(op, ListNamespacesOp):
            return standing.batch([op])[0]
        chosen = standing.search(op.namespace_prefix, filter=op.filter, limit=len(entries))
        found = {place: entries[place] for place in ((c.namespace, c.key) for c in chosen)}
        hits = ranked(found, self._scores(op.query, person.session) if op.query else None)
        page = hits[op.offset :][: op.limit]
        return [SearchItem(**entries[place].fields(place), score=score) for place, score in page]

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


def _text_of(op: PutOp) -> str:
    """Return what the providers remember of a value: its indexed fields, or all of them."""
    if op.value is None:
        return ""
    texts = {name: ", ".join(get_text_at_path(op.value, name)) for name in op.index or op.value}
    alone = len(texts) == 1 or op.index
    parts = texts.values() if alone else (f"{name}: {text}" for name, text in texts.items())
    return "; ".join(part for part in parts if part) or msgspec.json.encode(op.value).decode()
