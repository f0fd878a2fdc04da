"""docs/providers.md runs: its provider passes the contract, as the page's own test says."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from helpers.processes.stalls import STANDSTILL
from memorybus.config.settings import load
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract
from provider_example import code_blocks, example_module


class TestExample(ProviderContract):
    deadline = ProviderContract.deadline + STANDSTILL

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        return example_module().NotesProvider(ProviderConfig(name="notes", home=tmp_path))


@pytest.fixture
def my_notes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Make the example importable under the name the page gives it."""
    module = example_module()
    monkeypatch.setitem(sys.modules, "my_notes", module)
    return module


def test_the_example_fits_in_sixty_lines():
    """A provider can be written in about sixty lines, blank ones apart."""
    lines = [line for line in code_blocks()[0].splitlines() if line.strip()]

    assert len(lines) <= 60


def test_the_example_is_loaded_by_module_and_class(my_notes, tmp_path):
    """The kind of the page's memorybus.toml names the class, and its option is accepted."""
    config = ProviderConfig(name="notes", home=tmp_path, options={"results": 5})

    provider = registry.create("my_notes:NotesProvider", config)

    assert type(provider) is my_notes.NotesProvider


def test_the_pages_settings_are_read(tmp_path):
    """The page's memorybus.toml gives the instance its kind and its options."""
    (tmp_path / "memorybus.toml").write_text(code_blocks("toml")[0])

    settings = load(environ={}, directory=tmp_path)

    assert settings.providers[-1] == "notes"
    assert settings.provider_kind("notes") == "my_notes:NotesProvider"
    assert settings.provider_options("notes") == {"results": 5}


def test_the_pages_test_class_runs(my_notes, tmp_path):
    """The second block is a working subclass of the contract."""
    names: dict[str, Any] = {}
    exec(code_blocks()[1], names)

    names["TestNotes"]().test_recall_keeps_scopes_apart(tmp_path)
