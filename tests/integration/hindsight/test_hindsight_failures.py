"""What goes wrong between the provider and Hindsight, and what it leads to."""

import sys
from pathlib import Path

import pytest
from helpers.providers.hindsight_opening import Opened
from helpers.providers.service_failures import NOTE, TURN, ServiceFailures
from helpers.services.fake_hindsight import FakeHindsight
from helpers.services.troubles import Trouble
from memorybus.errors import (
    ConfigError,
    MissingProvider,
    Permanent,
    ProviderError,
    Transient,
    Unavailable,
)
from memorybus.events import Event
from memorybus_providers.base import ProviderConfig
from memorybus_providers.contract.samples import HERE, feed, hook_context, recall_context, steps
from memorybus_providers.hindsight import HindsightProvider

MODES = ({}, {"turns_per_document": 5}, {"queued": True})


@pytest.mark.parametrize("options", MODES, ids=("event", "session", "queued"))
@pytest.mark.parametrize("event", [TURN, NOTE], ids=("turn", "note"))
@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        ("lost", Transient),
        ("half", Transient),
        ("strange", Transient),
        ("slow", Transient),
        (500, Transient),
        (409, Transient),
        (503, Unavailable),
        (401, Unavailable),
        (422, Permanent),
    ],
)
def test_a_write_that_failed_and_comes_again_is_there_once(
    hindsight_fake: FakeHindsight,
    open_hindsight: Opened,
    options: dict[str, object],
    event: Event,
    trouble: Trouble,
    kind: type[ProviderError],
) -> None:
    """Whatever befell a write, its error says what to do, and sent again it is stored once (G4)."""
    provider = open_hindsight(**options)
    (step,) = steps(event)
    hindsight_fake.troubles = [trouble]
    ctx = hook_context(step, deadline=0.5 if trouble == "slow" else 30.0)
    hook = provider.sync_turn if event is TURN else provider.on_memory_write
    with pytest.raises(ProviderError) as failed:
        hook(event, ctx)  # type: ignore[operator]
    assert type(failed.value) is kind
    hindsight_fake.gate.set()
    feed(provider, [step])
    assert len(hindsight_fake.texts()) == 1
    assert len(provider.prefetch("wolpertinger", recall_context(HERE))) == 1


class TestFailures(ServiceFailures):
    key = "Bearer {}"
    elsewhere = "elsewhere"
    module = "memorybus_providers.hindsight"
    heavy = ("hindsight_client", "aiohttp")

    @pytest.fixture
    def server(self, hindsight_fake: FakeHindsight) -> FakeHindsight:
        """The fake."""
        return hindsight_fake

    @pytest.fixture
    def open_one(self, open_hindsight: Opened) -> Opened:
        """Open an instance on it."""
        return open_hindsight


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "localhost"}, "http"),
        ({"prefix": "Ours"}, "prefix"),
        ({"timeout": 0.0}, "timeout"),
        ({"turns_per_document": 0}, "turns_per_document"),
        ({"turns_per_document": 2, "queued": True}, "exclude"),
        ({"recall_tokens": 0}, "recall_tokens"),
        ({"recall_budget": "huge"}, "recall_budget"),
        ({"strange": 1}, "strange"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, object], said: str) -> None:
    """An option that cannot be meant is refused before anything is made."""
    with pytest.raises(ConfigError, match=said):
        HindsightProvider(ProviderConfig(name="hs", home=Path("/nowhere"), options=options))


def test_without_its_client_the_remedy_is_named(
    open_hindsight: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who lacks the extra is told how to install it."""
    monkeypatch.setitem(sys.modules, "memorybus_providers.hindsight.calls", None)
    with pytest.raises(MissingProvider, match=r"memorybus\[hindsight\]"):
        open_hindsight()
