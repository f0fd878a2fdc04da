"""What goes wrong between the provider and Mem0, and what it leads to."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from helpers.providers.mem0_opening import Opened
from helpers.providers.service_failures import ServiceFailures
from helpers.services.fake_mem0 import FakeMem0
from memorybus.errors import (
    ConfigError,
    MissingProvider,
    Unavailable,
    install_command,
)
from memorybus_providers.base import ProviderConfig
from memorybus_providers.mem0 import Mem0Provider, Mem0ServerProvider


class TestFailures(ServiceFailures):
    key = "{}"
    elsewhere = "v1"
    module = "memorybus_providers.mem0"
    heavy = ("mem0", "urllib3")
    options: ClassVar[Mapping[str, Any]] = {"infer": False}

    @pytest.fixture
    def server(self, mem0_fake: FakeMem0) -> FakeMem0:
        """The fake."""
        return mem0_fake

    @pytest.fixture
    def open_one(self, open_mem0: Opened) -> Opened:
        """Open an instance on it."""
        return open_mem0


def test_health_is_what_an_answer_says(mem0_fake, open_mem0):
    """A service that answers is well; one that is away says so as any call does."""
    assert open_mem0().health(5.0) == ""
    with pytest.raises(Unavailable):
        open_mem0(base_url="http://127.0.0.1:1").health(5.0)
    assert mem0_fake.texts() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "localhost"}, "http"),
        ({"prefix": "Ours"}, "prefix"),
        ({"timeout": 0.0}, "timeout"),
        ({"results": 0}, "results"),
        ({"infer": "maybe"}, "infer"),
        ({"strange": 1}, "strange"),
    ],
)
def test_wrong_options_are_refused_by_name(options, said):
    """An option that cannot be meant is refused before anything is made."""
    with pytest.raises(ConfigError, match=said):
        Mem0ServerProvider(ProviderConfig(name="m", home=Path("/nowhere"), options=options))


@pytest.mark.parametrize(
    ("told", "mode", "said"),
    [
        ("{", 0o600, "cannot be read"),
        ("{}", 0o644, "chmod 600"),
        ("{}", 0o600, "within one process"),
        (
            '{"vector_store": {"provider": "qdrant", "config": {"path": "/x"}}}',
            0o600,
            "one process",
        ),
        ('{"vector_store": {"provider": "faiss", "config": {}}}', 0o600, "within one process"),
    ],
)
def test_a_file_that_cannot_serve_is_refused(tmp_path, told, mode, said):
    """Mem0's settings hold keys, so nobody else may read them, and name a store for all workers."""
    file = tmp_path / "mem0.json"
    file.write_text(told)
    file.chmod(mode)
    options = {"config_file": str(file)}
    provider = Mem0Provider(ProviderConfig(name="m", home=tmp_path, options=options))
    with pytest.raises(ConfigError, match=said):
        provider.open()


def test_without_its_library_the_remedy_is_named(tmp_path, monkeypatch):
    """Who lacks the extra is told how to install it."""
    monkeypatch.setitem(sys.modules, "mem0", None)
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    file = tmp_path / "mem0.json"
    store = {"provider": "pgvector", "config": {"connection_string": "postgresql:///x"}}
    file.write_bytes(msgspec.json.encode({"vector_store": store}))
    file.chmod(0o600)
    options = {"config_file": str(file)}
    provider = Mem0Provider(ProviderConfig(name="m", home=tmp_path, options=options))
    with pytest.raises(MissingProvider, match=re.escape(install_command("mem0"))):
        provider.open()
