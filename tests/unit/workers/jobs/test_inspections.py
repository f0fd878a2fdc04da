"""Each question to an instance gets its answer; what it keeps is told in small pages."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import fakeredis
import msgspec
import pytest
from memorybus.config.settings import Settings
from memorybus.events import TurnCompleted
from memorybus.jobs.inspect import (
    PARTITION,
    CheckHealth,
    DigestPage,
    Erase,
    EraseReport,
    Inspection,
    InspectionQuestion,
    InstanceHealth,
    KeptPage,
    OwnersPage,
    ReadDigest,
    ReadKept,
    ReadOwners,
    RecalledItems,
    TryRecall,
)
from memorybus.jobs.waiting import Reply, read_replies
from memorybus.recall.model import RecalledItem, RecallRequest
from memorybus.redis.keys import Keys
from memorybus.testing import FakeClock
from memorybus.text.fence import build_block
from memorybus_providers.base import (
    Capabilities,
    MemoryOwner,
    MemoryProvider,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
    Residue,
    StoredMemory,
)
from memorybus_workers.hosting.instances import make_instance
from memorybus_workers.jobs.inspect import MAX_PAGE_ITEMS, InspectionAnswer, InspectionRunner
from memorybus_workers.jobs.prefetch import render


class Keeping(MemoryProvider):
    """A provider that keeps numbered memories of everybody, of a given length."""

    kind = "keeping"
    capabilities = Capabilities(exports=True)
    count, length = 2 * MAX_PAGE_ITEMS + 1, 1

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield all of them."""
        for number in range(self.count):
            yield StoredMemory(text=f"{number}" * self.length, user=scope.user or "")


class Silent(MemoryProvider):
    """A provider that cannot say what it keeps."""

    kind = "silent"


class Long(Keeping):
    """A provider of few and long memories."""

    count, length = 5, 200_000


class Reported(MemoryProvider):
    """A provider that answers each question with something that no other answer says."""

    kind = "telling"
    capabilities = Capabilities(exports=True, forgets=True, handles=frozenset({TurnCompleted}))

    def digest(self, after: str = "") -> Iterator[tuple[str, str]]:
        """Yield two pairs."""
        yield from (("turn 1", "d1"), ("turn 2", "d2"))

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return a text that names the query."""
        return [Recollection(f"found for {query}", session="s")]

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield a memory that names the person."""
        yield StoredMemory(f"kept of {scope.user}", user=scope.user or "")

    def owners(self, after: tuple[str, str, str] | None = None) -> Iterator[MemoryOwner]:
        """Yield one owner."""
        yield MemoryOwner("a", "ben", memories=4)

    def forget(self, scope: RecallScope) -> Residue:
        """Say that something of the person is left."""
        return Residue(erased=3, remains=(f"a backup of {scope.user}",))

    def health(self, deadline: float) -> str:
        """Be unwell."""
        return "its disk is full"


def runner(provider: MemoryProvider, redis: fakeredis.FakeRedis, home: Path) -> InspectionRunner:
    """Make a runner whose only instance is this provider."""

    def visited(_: str) -> AbstractContextManager[MemoryProvider]:
        return nullcontext(provider)

    return InspectionRunner(redis, Settings(data_dir=home), FakeClock(), visited)


def pages(provider: MemoryProvider, tmp_path: Path) -> list[KeptPage]:
    """Ask for page after page, until there is none."""
    inspecting = runner(provider, fakeredis.FakeRedis(), tmp_path)
    found: list[KeptPage] = []
    more = True
    while more:
        skip = sum(len(page.memories) for page in found)
        page: Any = inspecting._answer(
            Inspection(
                id="0" * 32,
                provider="p",
                instance="p",
                question=ReadKept(RecallRequest(query="", user="ann"), skip),
            )
        )
        found.append(page)
        more = page.more
    return found


@pytest.mark.parametrize(
    ("kind", "sizes"), [(Keeping, [MAX_PAGE_ITEMS, MAX_PAGE_ITEMS, 1]), (Long, [2, 2, 1])]
)
def test_pages_are_bounded_and_join(kind, sizes, tmp_path):
    """G10: a page ends at a number of memories or of bytes; together they are the whole."""
    config = ProviderConfig(name="p", home=tmp_path)
    found = pages(kind(config), tmp_path)
    assert [len(page.memories) for page in found] == sizes
    told = [one["text"] for page in found for one in page.memories]
    assert told == [one.text for one in kind(config).export(RecallScope(user="ann"))]
    assert {one["user"] for page in found for one in page.memories} == {"ann"}


def test_a_provider_that_cannot_say_is_told_apart(tmp_path):
    """No answer is not the same as nothing kept."""
    config = ProviderConfig(name="p", home=tmp_path)
    assert pages(Silent(config), tmp_path) == [KeptPage(given=False)]


ANSWERS: list[tuple[InspectionQuestion, InspectionAnswer]] = [
    (ReadDigest(), DigestPage(pairs=(("turn 1", "d1"), ("turn 2", "d2")))),
    (
        TryRecall(RecallRequest(query="tea")),
        RecalledItems((RecalledItem("p", "found for tea", "s", None),)),
    ),
    (
        ReadKept(RecallRequest(query="", user="ann")),
        KeptPage(memories=({"text": "kept of ann", "user": "ann"},)),
    ),
    (ReadOwners(), OwnersPage(owners=({"agent": "a", "user": "ben", "memories": 4},))),
    (
        Erase(RecallRequest(query="", user="cem")),
        EraseReport(erased=3, remains=("a backup of cem",)),
    ),
    (CheckHealth(), InstanceHealth("its disk is full")),
]

NO_ANSWERS: list[tuple[InspectionQuestion, InspectionAnswer]] = [
    (ReadDigest(), DigestPage(given=False)),
    (TryRecall(RecallRequest(query="tea")), RecalledItems()),
    (ReadKept(RecallRequest(query="")), KeptPage(given=False)),
    (ReadOwners(), OwnersPage(given=False)),
    (Erase(RecallRequest(query="", user="ann")), EraseReport(given=False)),
    (CheckHealth(), InstanceHealth()),
]


def ask(kind: type[MemoryProvider], question: InspectionQuestion, home: Path) -> Reply:
    """Send a question to an instance of a provider through Redis; return the reply."""
    redis = fakeredis.FakeRedis()
    asked = Inspection(id="0" * 32, provider="p", instance="p", question=question)
    provider = kind(ProviderConfig(name="p", home=home))
    runner(provider, redis, home).run(msgspec.json.encode(asked).decode())
    return read_replies(redis.hgetall(Keys(Settings().namespace).reply(PARTITION, asked.id)))["p"]


@pytest.mark.parametrize(("question", "answer"), ANSWERS, ids=lambda one: type(one).__name__)
def test_each_question_gets_its_own_answer(question, answer, tmp_path):
    """A question keeps its type and content on its way through Redis, and so does the reply."""
    reply = ask(Reported, question, tmp_path)
    assert reply.error == ""
    fitting = [one for _, one in ANSWERS if msgspec.json.encode(one).decode() == reply.text]
    assert fitting == [answer], "it is this answer, and could be no other one"


@pytest.mark.parametrize(("question", "answer"), NO_ANSWERS, ids=lambda one: type(one).__name__)
def test_what_a_provider_cannot_say_is_no_error(question, answer, tmp_path):
    """A provider that can say nothing replies so to every question."""
    reply = ask(Silent, question, tmp_path)
    assert reply.error == ""
    assert msgspec.json.decode(reply.text, type=type(answer)) == answer


LATE = 1_795_656_600_000
"""2026-11-26, 1:30 UTC: in New York it is the evening before."""


def test_a_line_shows_the_day_that_it_was_where_the_person_is():
    """What was said in the evening bears that evening's date."""
    want = RecallRequest("When?", "agent", "ann", "", 500)
    found = [Recollection(text="Tea is at five", at=LATE, until=LATE + 1)]
    for zone, day in (("America/New_York", "2026-11-25"), ("UTC", "2026-11-26")):
        shown = render(found, want, "p", zone=ZoneInfo(zone)).lines
        assert shown == (f"- [{day}; until {day}] Tea is at five",)


def test_a_provider_knows_the_zone_of_the_settings(make_settings):
    """The instance of a worker reads times by the zone that is set."""
    settings = make_settings(providers=("holographic",), timezone="America/New_York")
    made = make_instance(settings, "holographic", FakeClock())
    assert made.config.zone == ZoneInfo("America/New_York")


LONG = "quokka " * 800


@pytest.mark.parametrize("others", [0, 1])
def test_a_long_memory_is_cut_and_names_its_event(others):
    """A memory longer than the block is shown in part, with the command that shows all of it."""
    want = RecallRequest("Where?", "agent", "ann", "", 2_000)
    found = [Recollection(text=LONG, event="0a1b"), Recollection(text="Tea is at five")]

    lines = render(found, want, "p").lines
    block = build_block([("p", lines), *[("q", lines)] * others], 2_000)

    assert block.count("[all of it: memorybus events get 0a1b] quokka quokka") == 1
    assert block.count("…\n") == 1
    assert 1_900 < len(block) <= 2_000


def test_too_little_of_a_memory_is_not_shown():
    """A shorter memory takes the room that would show too little of a longer one."""
    want = RecallRequest("Where?", "agent", "ann", "", budget=150)
    found = [Recollection(text=LONG), Recollection(text="Tea is at five")]

    assert render(found, want, "p").lines == ("- Tea is at five",)
