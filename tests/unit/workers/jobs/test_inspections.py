"""Each question to an instance gets its answer; what it keeps is told in small pages."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import fakeredis
import msgspec
import pytest
from memorybus.config.settings import Settings
from memorybus.jobs.inspect import (
    PARTITION,
    CheckEvents,
    CheckHealth,
    DigestPage,
    Erase,
    EraseReport,
    Inspection,
    InstanceHealth,
    KeptPage,
    KnownEvents,
    OwnersPage,
    Question,
    ReadDigest,
    ReadKept,
    ReadOwners,
    RecalledItems,
    TryRecall,
)
from memorybus.jobs.replies import read_replies
from memorybus.recall.model import RecallRequest
from memorybus.redis.keys import Keys
from memorybus.testing import FakeClock
from memorybus_providers.base import (
    Capabilities,
    MemoryProvider,
    ProviderConfig,
    RecallScope,
    StoredMemory,
)
from memorybus_workers.jobs.inspect import MOST, InspectionRunner


class Keeping(MemoryProvider):
    """A provider that keeps numbered memories of everybody, of a given length."""

    kind = "keeping"
    capabilities = Capabilities(exports=True)
    count, length = 2 * MOST + 1, 1

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


@pytest.mark.parametrize(("kind", "sizes"), [(Keeping, [MOST, MOST, 1]), (Long, [2, 2, 1])])
def test_pages_are_bounded_and_join(kind: type[Keeping], sizes: list[int], tmp_path: Path) -> None:
    """G10: a page ends at a number of memories or of bytes; together they are the whole."""
    config = ProviderConfig(name="p", home=tmp_path)
    found = pages(kind(config), tmp_path)
    assert [len(page.memories) for page in found] == sizes
    told = [one["text"] for page in found for one in page.memories]
    assert told == [one.text for one in kind(config).export(RecallScope(user="ann"))]
    assert {one["user"] for page in found for one in page.memories} == {"ann"}


def test_a_provider_that_cannot_say_is_told_apart(tmp_path: Path) -> None:
    """No answer is not the same as nothing kept."""
    config = ProviderConfig(name="p", home=tmp_path)
    assert pages(Silent(config), tmp_path) == [KeptPage(given=False)]


ANSWERS: list[tuple[Question, Any]] = [
    (ReadDigest(), DigestPage(given=False)),
    (TryRecall(RecallRequest(query="tea")), RecalledItems()),
    (CheckEvents(()), KnownEvents(given=False)),
    (ReadKept(RecallRequest(query="")), KeptPage(given=False)),
    (ReadOwners(), OwnersPage(given=False)),
    (Erase(RecallRequest(query="", user="ann")), EraseReport(given=False)),
    (CheckHealth(), InstanceHealth()),
]


@pytest.mark.parametrize(("question", "answer"), ANSWERS, ids=lambda one: type(one).__name__)
def test_each_question_gets_its_own_answer(question: Question, answer: Any, tmp_path: Path) -> None:
    """A question keeps its type on its way through Redis, and so does the reply."""
    redis = fakeredis.FakeRedis()
    asked = Inspection(id="0" * 32, provider="p", instance="p", question=question)
    provider = Silent(ProviderConfig(name="p", home=tmp_path))
    runner(provider, redis, tmp_path).run(msgspec.json.encode(asked).decode())
    reply = read_replies(redis.hgetall(Keys(Settings().namespace).reply(PARTITION, asked.id)))["p"]
    assert reply.error == ""
    assert msgspec.json.decode(reply.text, type=type(answer)) == answer
