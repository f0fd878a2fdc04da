"""What providers of another contract say of the agent's own files and tools, before they begin."""

import logging
from pathlib import Path
from typing import Any

import pytest
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.events import MemoryWritten, Scope
from memorybus.registry.tools import collect_tools
from memorybus_providers.base import MemoryProvider
from memorybus_providers.contract.samples import feed, recall_context, steps
from memorybus_workers.hosting.instances import make_instance
from memorybus_workers.hosting.served import tools_of

ANN = Scope(agent="coach", user="ann")


def beside(tmp_path: Path, provider: str, name: str = "builtin") -> MemoryProvider:
    """Return an instance of settings that name `provider`, too."""
    table: dict[str, dict[str, Any]] = {"other": {"kind": f"registry:{provider}"}}
    settings = Settings(data_dir=tmp_path, providers=("builtin", "other"), provider=table)
    return make_instance(settings, name, SYSTEM)


def recalled(mirror: MemoryProvider) -> list[str]:
    """Return what a mirror recalls after a write to each store."""
    mirror.open()
    writes = [
        MemoryWritten(action="add", store=store, content=f"Tea in {store}.")
        for store in ("memory", "user")
    ]
    feed(mirror, steps(*writes, scope=ANN))
    found = [one.text for one in mirror.prefetch("Tea?", recall_context(ANN))]
    mirror.shutdown()
    return found


def test_a_write_that_another_provider_suppresses_is_not_mirrored(tmp_path):
    """A store that a provider keeps alone is in no copy of the agent's files; that is said."""
    mirror = beside(tmp_path, "contract.registry_example:Suppressing")

    assert recalled(mirror) == ["Tea in user."]
    assert mirror.note == "another provider keeps memory alone: such writes are not mirrored"


@pytest.mark.parametrize("provider", ["contract.registry_example:Bare", "no_such_module:Nobody"])
def test_a_write_that_nobody_suppresses_is_mirrored(tmp_path, provider, caplog):
    """Who says nothing suppresses nothing; who cannot be asked is told of and stops no mirror."""
    with caplog.at_level(logging.WARNING):
        mirror = beside(tmp_path, provider)

    assert sorted(recalled(mirror)) == ["Tea in memory.", "Tea in user."]
    assert mirror.note == ""
    assert ("cannot list the stores" in caplog.text) == provider.startswith("no_such")


def test_the_model_is_offered_no_hidden_tool(tmp_path):
    """What a provider brings and does not name in `tool_names` is not declared to any agent."""
    tooled = beside(tmp_path, "contract.registry_example:Tooled", "other")

    assert [one["name"] for one in collect_tools(tools_of({"other": tooled})).schemas()] == [
        "tea_recall"
    ]


@pytest.mark.parametrize("option", ["calls_per_second", "daily_budget", "concurrency"])
@pytest.mark.parametrize("kind", ["builtin", "holographic"])
def test_what_a_provider_cannot_obey_is_refused(tmp_path, kind, option):
    """Neither a limit nor a number of calls at once is accepted and then ignored."""
    table = {"kind": kind, option: 4}
    settings = Settings(data_dir=tmp_path, provider={"notes": table})
    with pytest.raises(ConfigError, match=option):
        make_instance(settings, "notes", SYSTEM)
