"""What goes wrong between the provider and Hindsight, and what it leads to."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from helpers.providers.hindsight_opening import Opened
from helpers.providers.service_failures import TURN, ServiceFailures
from helpers.services.fake_hindsight import FakeHindsight
from memorybus.errors import (
    ConfigError,
    MissingProvider,
    Transient,
    install_command,
)
from memorybus_providers.base import ProviderConfig
from memorybus_providers.contract.samples import feed, steps
from memorybus_providers.hindsight import HindsightProvider


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


class TestFailuresQueued(TestFailures):
    """The same holds where Hindsight queues what it is given."""

    options: ClassVar[Mapping[str, Any]] = {"queued": True}


def test_an_answer_that_is_none_is_no_events_fault(hindsight_fake, open_hindsight):
    """What the client cannot read is tried again, and stored once."""
    provider = open_hindsight()
    hindsight_fake.troubles = ["strange"]
    told = steps(TURN)
    with pytest.raises(Transient):
        feed(provider, told)
    feed(provider, told)
    assert len(hindsight_fake.texts()) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "localhost"}, "http"),
        ({"prefix": "Ours"}, "prefix"),
        ({"timeout": 0.0}, "timeout"),
        ({"recall_tokens": 0}, "recall_tokens"),
        ({"recall_budget": "huge"}, "recall_budget"),
        ({"strange": 1}, "strange"),
    ],
)
def test_wrong_options_are_refused_by_name(options, said):
    """An option that cannot be meant is refused before anything is made."""
    with pytest.raises(ConfigError, match=said):
        HindsightProvider(ProviderConfig(name="hs", home=Path("/nowhere"), options=options))


def test_without_its_client_the_remedy_is_named(open_hindsight, monkeypatch):
    """Who lacks the extra is told how to install it."""
    monkeypatch.setitem(sys.modules, "memorybus_providers.hindsight.calls", None)
    with pytest.raises(MissingProvider, match=re.escape(install_command("hindsight"))):
        open_hindsight()
