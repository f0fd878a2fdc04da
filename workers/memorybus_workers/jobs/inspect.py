"""The job that inspects an instance: its digest, recalls, memories and owners."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, TypeVar

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import Permanent, Transient
from memorybus.jobs.inspect import (
    PARTITION,
    CheckHealth,
    DigestPage,
    Erase,
    EraseReport,
    Inspection,
    InstanceHealth,
    KeptPage,
    OwnersPage,
    ReadDigest,
    ReadKept,
    ReadOwners,
    RecalledItems,
    TryRecall,
)
from memorybus.jobs.waiting import Reply
from memorybus.recall.model import RecallRequest
from memorybus.text.redact import one_line
from memorybus_providers.base import (
    MemoryOwner,
    MemoryProvider,
    RecallContext,
    RecallScope,
)
from redis import Redis

from memorybus_workers.jobs.prefetch import render
from memorybus_workers.jobs.tools import answer_request, parse_request

MAX_PAGE_ITEMS = 2_000  # the most pairs or memories of a page
_MOST_BYTES = 1 << 18  # the most bytes of a page (G10)
_T = TypeVar("_T")
InspectionAnswer = DigestPage | KeptPage | OwnersPage | EraseReport | InstanceHealth | RecalledItems
Visit = Callable[[str], AbstractContextManager[MemoryProvider]]


class InspectionRunner:
    """Runs inspections. Belongs to one process."""

    def __init__(self, redis: Redis, settings: Settings, clock: Clock, visited: Visit) -> None:
        self._redis = redis
        self._settings = settings
        self._clock = clock
        self._visited = visited
        self._deadline = settings.recall_timeout / 2

    def run(self, body: str) -> None:
        asked = parse_request(body, Inspection)

        def answer() -> Reply:
            return Reply(msgspec.json.encode(self._answer(asked)).decode())

        answer_request(self._redis, self._settings, PARTITION, asked, answer)

    def _answer(self, inspection: Inspection) -> InspectionAnswer:
        until = self._clock.monotonic() + self._deadline
        answer: InspectionAnswer
        with self._visited(inspection.instance) as provider:
            match inspection.question:
                case ReadDigest() as asked:
                    answer = self._digest_page(provider, asked, until)
                case TryRecall(want):
                    answer = self._recall(provider, want, inspection.instance)
                case ReadKept() as asked:
                    answer = self._kept_page(provider, asked, until)
                case ReadOwners() as asked:
                    answer = self._owners_page(provider, asked, until)
                case Erase(owner):
                    answer = _erase(provider, owner)
                case CheckHealth():
                    answer = InstanceHealth(one_line(provider.health(self._deadline)))
        return answer

    def _digest_page(self, provider: MemoryProvider, asked: ReadDigest, until: float) -> DigestPage:
        pairs = provider.digest(asked.after)
        if pairs is None:
            return DigestPage(given=False)
        if asked.keys:
            pairs = _pick_pairs(provider, sorted(key for key in asked.keys if key > asked.after))
        page: list[tuple[str, str]] = []
        size = 0
        for key, digest in pairs:
            page.append((key, digest))
            size += len(key) + len(digest)
            spent = size > _MOST_BYTES or self._clock.monotonic() > until
            if spent or len(page) >= MAX_PAGE_ITEMS:
                return DigestPage(pairs=tuple(page), more=True)
        return DigestPage(pairs=tuple(page))

    def _kept_page(self, provider: MemoryProvider, asked: ReadKept, until: float) -> KeptPage:
        can = provider.capabilities
        if not (can.curates if asked.curated else can.exports):
            return KeptPage(given=False)
        read = provider.curated if asked.curated else provider.export
        kept = (m for m in read(_scope_of(asked.whose)) if asked.state in {"", m.state})
        page: list[dict[str, Any]] = []
        size, most = 0, min(asked.most or MAX_PAGE_ITEMS, MAX_PAGE_ITEMS)
        items = self._filter_by_text(
            kept,
            asked.containing,
            lambda item: (item.text, item.event),
            until,
        )
        for memory in islice(items, asked.skip, None):
            if len(page) >= most:
                return KeptPage(memories=tuple(page), more=True)
            page.append(msgspec.to_builtins(memory))
            size += len(memory.text)
            if size > _MOST_BYTES or self._clock.monotonic() > until:
                return KeptPage(memories=tuple(page), more=True)
        return KeptPage(memories=tuple(page))

    def _owners_page(self, provider: MemoryProvider, asked: ReadOwners, until: float) -> OwnersPage:
        last = asked.after
        after = (last.agent or "", last.user or "", last.workspace or "") if last else None
        owners = provider.owners(after)
        if owners is None:
            return OwnersPage(given=False)
        most = min(asked.most or MAX_PAGE_ITEMS, MAX_PAGE_ITEMS)
        matching = self._filter_by_text(owners, asked.containing, _names_of, until)
        page = [msgspec.to_builtins(owner) for owner in islice(matching, most + 1)]
        return OwnersPage(owners=tuple(page[:most]), more=len(page) > most)

    def _filter_by_text(
        self,
        items: Iterable[_T],
        containing: str,
        texts: Callable[[_T], Iterable[str]],
        until: float,
    ) -> Iterator[_T]:
        """Yield the items that hold a text, ignoring case; all items if the text is ""."""
        wanted = containing.casefold()
        for checked, item in enumerate(items):
            if not wanted or any(wanted in text.casefold() for text in texts(item)):
                yield item
            elif self._clock.monotonic() > until:
                raise Transient(f"the time was enough for {checked}; ask for less")

    def _recall(
        self, provider: MemoryProvider, want: RecallRequest, instance: str
    ) -> RecalledItems:
        context = RecallContext(_scope_of(want), want.session, want.budget, self._deadline)
        recollections = provider.prefetch(want.query, context)
        detailed = msgspec.structs.replace(want, detail=True)
        return RecalledItems(render(recollections, detailed, instance).items)


def _scope_of(owner: RecallRequest) -> RecallScope:
    return RecallScope(owner.agent, owner.user, owner.workspace)


def _names_of(owner: MemoryOwner) -> tuple[str, str, str]:
    return owner.agent, owner.user, owner.workspace


def _erase(provider: MemoryProvider, owner: RecallRequest) -> EraseReport:
    if (owner.agent, owner.user, owner.workspace) == (None, None, None):
        raise Permanent("an erasure needs an owner")
    if not provider.capabilities.forgets:
        return EraseReport(given=False)
    residue = provider.forget(_scope_of(owner))
    return EraseReport(erased=residue.erased, remains=residue.remains)


def _pick_pairs(provider: MemoryProvider, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of some keys, in their order; a key without content has an empty digest."""
    for wanted in keys:
        above = provider.digest(_text_below(wanted)) or iter(())
        key, digest = next((pair for pair in above if pair[0] >= wanted), ("", ""))
        yield wanted, digest if key == wanted else ""


def _text_below(key: str) -> str:
    """Return a text just below a key: the digest above it begins at the key, or close before it."""
    last = ord(key[-1]) - 1
    may_be = last >= 0 and not 0xD800 <= last <= 0xDFFF  # a text has no half surrogate pairs
    return key[:-1] + (chr(last) + chr(sys.maxunicode) if may_be else "")
