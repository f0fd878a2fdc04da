"""What an instance keeps is told page by page, each small, and none twice."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import fakeredis
import pytest
from memorybus.config.settings import Settings
from memorybus.jobs.inspect import Inspection, KeptPage
from memorybus.recall.model import RecallRequest
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


def pages(provider: MemoryProvider, tmp_path: Path) -> list[KeptPage]:
    """Ask for page after page, until there is none."""

    def visited(_: str) -> AbstractContextManager[MemoryProvider]:
        return nullcontext(provider)

    settings = Settings(data_dir=tmp_path)
    inspecting = InspectionRunner(fakeredis.FakeRedis(), settings, FakeClock(), visited)
    found: list[KeptPage] = []
    more = True
    while more:
        skip = sum(len(page.memories) for page in found)
        page: Any = inspecting._answer(
            Inspection(
                id="0" * 32,
                provider="p",
                instance="p",
                asks="kept",
                want=RecallRequest(query="", user="ann"),
                skip=skip,
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
