"""The shipped contract, run on each provider that needs no real server; services are fakes."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pytest
from helpers.processes.stalls import STANDSTILL
from helpers.services.embedding_server import embedding_server
from helpers.services.fake_hindsight import fake_hindsight
from helpers.services.fake_mem0 import fake_mem0
from helpers.services.honcho_server import honcho_server
from helpers.services.mentisdb_server import mentisdb_server
from helpers.services.webhook_receiver import WebhookReceiver, webhook_receiver
from memorybus.ids import derived_id
from memorybus_hermes.skills import SkillsProvider
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract


class LocalContract(ProviderContract):
    kind: str
    options: ClassVar[dict[str, Any]] = {}
    deadline = ProviderContract.deadline + STANDSTILL

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        config = ProviderConfig(name=self.kind, home=tmp_path, options=self.options)
        return registry.create(self.kind, config)


class TestBuiltin(LocalContract):
    kind = "builtin"


class TestHolographic(LocalContract):
    kind = "holographic"


class TestHolographicWithAnEmbedder(LocalContract):
    """The contract holds with search by meaning, too: vectors are no part of the state."""

    kind = "holographic"

    @pytest.fixture(autouse=True)
    def _embedder(self) -> Iterator[None]:
        with embedding_server() as server:
            self.options = {"embedder": server.address, "embedder_model": "m"}
            yield


class TestSkills(ProviderContract):
    """The contract holds for the skills of a Hermes home; the state is Hermes's record of use."""

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        (tmp_path / "hermes" / "skills").mkdir(parents=True, exist_ok=True)
        options = {"hermes_home": str(tmp_path / "hermes")}
        return SkillsProvider(ProviderConfig(name="skills", home=tmp_path, options=options))

    def state(self, provider: MemoryProvider, query: str) -> object:
        path = provider.config.home / "hermes" / "skills" / ".usage.json"
        return json.loads(path.read_text()) if path.exists() else {}


class TestWebhook(ProviderContract):
    """The state is what the receiver took, each id once, as a receiver is told to keep it."""

    @pytest.fixture(autouse=True)
    def _receiver(self, tmp_path: Path) -> Iterator[None]:
        with webhook_receiver() as receiver:
            self.receiver: WebhookReceiver = receiver
            yield

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        options = self.receiver.options(tmp_path)
        return registry.create(
            "webhook", ProviderConfig(name="webhook", home=tmp_path, options=options)
        )

    def state(self, provider: MemoryProvider, query: str) -> object:
        return sorted(self.receiver.kept)


class Served(Protocol):
    """A server with an address."""

    @property
    def url(self) -> str: ...


class ServiceContract(LocalContract):
    """Each test has a server, and each home names of its own on it."""

    server: ClassVar[Callable[[], AbstractContextManager[Served]]]

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with type(self).server() as server:
            self.url = server.url
            yield

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        prefix = f"t{derived_id(str(tmp_path))[:12]}"
        options = {"base_url": self.url, "prefix": prefix, **self.options}
        config = ProviderConfig(name=self.kind, home=tmp_path, options=options)
        return registry.create(self.kind, config)


class TestMentisDb(ServiceContract):
    kind = "mentisdb"
    server = staticmethod(mentisdb_server)


@pytest.mark.skipif(find_spec("honcho") is None, reason="needs the extra honcho")
class TestHoncho(ServiceContract):
    kind = "honcho"
    server = staticmethod(honcho_server)


class TestHindsight(ServiceContract):
    kind = "hindsight"
    server = staticmethod(fake_hindsight)


class TestHindsightQueued(TestHindsight):
    """The contract holds where Hindsight queues what it is given, too."""

    options: ClassVar[dict[str, Any]] = {"queued": True}


class TestMem0Server(ServiceContract):
    kind = "mem0-server"
    server = staticmethod(fake_mem0)


class TestMem0ServerVerbatim(TestMem0Server):
    """The contract holds where nothing is inferred, too."""

    options: ClassVar[dict[str, Any]] = {"infer": False}
