"""The Hindsight provider on Hindsight's own server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from helpers.processes.stalls import STANDSTILL
from helpers.processes.waiting import wait_until
from helpers.services.hindsight_server import HindsightServer
from helpers.services.tables import tables_with
from memorybus.events import MemoryWritten, SessionSwitched, TurnCompleted
from memorybus.ids import derived_id
from memorybus_providers.base import MemoryProvider, ProviderConfig, RecallScope, TurnCall
from memorybus_providers.contract import ProviderContract
from memorybus_providers.contract.samples import (
    HERE,
    OTHER_USER,
    SampleStep,
    feed,
    hook_context,
    recall_context,
    steps,
)
from memorybus_providers.hindsight import HindsightProvider

pytestmark = pytest.mark.backends

Opened = Callable[..., HindsightProvider]


def provider_on(server: HindsightServer, home: Path, **options: Any) -> HindsightProvider:
    """Return an unopened provider whose banks are its home's."""
    prefix = f"t{derived_id(str(home))[:12]}"
    given = {"base_url": server.url, "prefix": prefix, **options}
    return HindsightProvider(ProviderConfig(name="hs", home=home, options=given))


class TestHindsightServer(ProviderContract):
    deadline = 4 * ProviderContract.deadline + STANDSTILL
    options: ClassVar[dict[str, Any]] = {}

    @pytest.fixture(autouse=True)
    def _server(self, hindsight: HindsightServer) -> None:
        self.server = hindsight

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        return provider_on(self.server, tmp_path, **self.options)


@pytest.fixture
def opened(hindsight: HindsightServer, tmp_path: Path) -> Opened:
    """Return a function that opens a provider with some options."""

    def make(**options: Any) -> HindsightProvider:
        provider = provider_on(hindsight, tmp_path, **options)
        provider.open()
        return provider

    return make


def test_a_queued_turn_is_there_once_and_a_copys_too(opened):
    """What Hindsight's own queue is given twice is one memory, in each bank that it is given to."""
    told = steps(TurnCompleted(user="A wolpertinger.", assistant="Noted.", ordinal=0))
    first = opened(queued=True)
    copy = opened(queued=True, prefix=f"{first.config.options['prefix']}c")
    for provider in (first, copy):
        feed(provider, [*told, *told])
    for provider in (first, copy):
        found = wait_until(
            lambda one=provider: one.prefetch("wolpertinger", recall_context(HERE)),
            "Hindsight's queue is done",
        )
        assert len(found) == 1
        provider.shutdown()


def test_turns_of_one_owner_go_together(opened):
    """Twenty turns in one call are twenty documents, each found by its event."""
    provider = opened()
    said = [TurnCompleted(user=f"wolpertinger number{n}", ordinal=n) for n in range(20)]
    given = steps(*said)
    provider.sync_turns(
        [TurnCall(e, hook_context(one)) for e, one in zip(said, given, strict=True)]
    )
    kept = {one.event for one in provider.export(RecallScope.own(HERE))}
    assert kept == {one.event_id for one in given}
    provider.shutdown()


def test_nothing_of_who_was_forgotten_is_left(opened, hindsight):
    """After an erasure no table of the server has the text, and others keep theirs."""
    provider = opened()
    gone = steps(
        TurnCompleted(user="I saw a jackalope.", assistant="Noted.", ordinal=0),
        MemoryWritten(action="add", store="user", content="Saw a jackalope."),
        MemoryWritten(action="replace", store="user", content="x", old_text="jackalope"),
        TurnCompleted(user="And a jackalope again.", assistant="Noted.", ordinal=1),
    )
    feed(provider, gone)
    rewind = SessionSwitched(new_id="s", rewound=True, retracted=(gone[0].event_id,))
    feed(provider, [SampleStep(9, rewind)])
    feed(provider, [SampleStep(10, TurnCompleted(user="I saw a basilisk."), OTHER_USER)])
    assert tables_with(hindsight.database, "jackalope")
    residue = provider.forget(RecallScope(None, HERE.user, None))
    assert residue.remains == ()
    assert tables_with(hindsight.database, "jackalope") == []
    assert tables_with(hindsight.database, "basilisk")
    provider.shutdown()


def test_a_server_that_is_well_says_nothing(opened):
    """The health of a server that keeps texts is the empty text."""
    provider = opened()
    assert provider.health(5.0) == ""
    provider.shutdown()
