"""The Mem0 provider on Mem0's own library and a real pgvector."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.processes.stalls import STANDSTILL
from helpers.services.chat_server import ChatServer, chat_server
from helpers.services.embedding_server import embedding_server
from helpers.services.environments import packages_of
from helpers.services.postgres_server import PostgresServer
from helpers.services.tables import tables_with
from memorybus.errors import Permanent, ProviderError, Transient, Unavailable
from memorybus.events import SessionSwitched, TurnCompleted
from memorybus.ids import derived_id
from memorybus_providers.base import MemoryProvider, ProviderConfig, RecallScope
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
from memorybus_providers.mem0 import Mem0Provider

pytestmark = pytest.mark.backends

NAME = "mem0-2.2.1"
TURN = TurnCompleted(user="I saw a jackalope.", assistant="Noted.", ordinal=0)


class Backend(msgspec.Struct):
    """A store for Mem0, and the model that it asks."""

    database: str
    settings: Path
    model: ChatServer


@pytest.fixture(scope="session")
def backend(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Backend]:
    """Return a database, and Mem0's settings for it; its packages can be imported from now on."""
    packages = str(packages_of(NAME))
    home = tmp_path_factory.mktemp("mem0")
    database = postgres_server.url(postgres_server.database())
    with (
        embedding_server() as embedder,
        chat_server() as model,
        pytest.MonkeyPatch.context() as set_,
    ):
        set_.setattr(sys, "path", [*sys.path, packages])  # behind our own packages
        set_.setenv("MEM0_DIR", str(home))
        set_.setenv("MEM0_TELEMETRY", "False")
        settings = home / "mem0.json"
        settings.write_bytes(msgspec.json.encode(_settings(database, embedder.address, model)))
        settings.chmod(0o600)
        yield Backend(database, settings, model)


def _settings(database: str, embedder: str, model: ChatServer) -> dict[str, Any]:
    key = {"api_key": "none", "model": "stub"}
    store = {
        "connection_string": database,
        "collection_name": "memorybus",
        "embedding_model_dims": 384,
    }
    embedding = {**key, "openai_base_url": embedder, "embedding_dims": 384}
    return {
        "vector_store": {"provider": "pgvector", "config": store},
        "embedder": {"provider": "openai", "config": embedding},
        "llm": {"provider": "openai", "config": {**key, "openai_base_url": model.address}},
    }


def provider_on(backend: Backend, home: Path, **options: Any) -> Mem0Provider:
    """Return an unopened provider whose memories are its home's."""
    prefix = f"t{derived_id(str(home))[:12]}"
    given = {"config_file": str(backend.settings), "prefix": prefix, **options}
    return Mem0Provider(ProviderConfig(name="m", home=home, options=given))


class TestMem0Library(ProviderContract):
    deadline = 4 * ProviderContract.deadline + STANDSTILL

    @pytest.fixture(autouse=True)
    def _backend(self, backend: Backend) -> None:
        self.backend = backend

    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        return provider_on(self.backend, tmp_path, infer=False)


Opened = Callable[..., Mem0Provider]


@pytest.fixture
def opened(backend: Backend, tmp_path: Path) -> Iterator[Opened]:
    """Return a function that opens a provider with some options."""
    made: list[Mem0Provider] = []

    def make(**options: Any) -> Mem0Provider:
        made.append(provider_on(backend, tmp_path, **options))
        made[-1].open()
        return made[-1]

    backend.model.status = 200
    backend.model.questions.clear()
    yield make
    for provider in made:
        provider.shutdown()


def test_what_is_inferred_of_a_turn_is_known_found_and_undone(backend, opened):
    """Memories that Mem0's model made have their event's id: looked up, recalled and taken back."""
    provider = opened()
    (step,) = steps(TURN)
    facts = [{"text": "Saw a jackalope."}, {"text": "Goes out at night."}]
    backend.model.text = msgspec.json.encode({"memory": facts}).decode()
    assert not provider.knows(step.event_id, hook_context(step))
    feed(provider, [step])
    assert backend.model.asked == 1
    assert provider.knows(step.event_id, hook_context(step))
    found = provider.prefetch("Who saw a jackalope?", recall_context(HERE))
    assert {one.event for one in found} == {step.event_id}
    assert "Saw a jackalope." in {one.text for one in found}
    assert list(provider.prefetch("jackalope", recall_context(OTHER_USER))) == []
    rewind = SessionSwitched(new_id="s", rewound=True, retracted=(step.event_id,))
    feed(provider, [SampleStep(2, rewind)])
    assert not provider.knows(step.event_id, hook_context(step))


@pytest.mark.parametrize(
    ("status", "kind"), [(500, Transient), (429, Unavailable), (401, Unavailable), (400, Permanent)]
)
def test_a_model_that_fails_is_no_lost_turn(backend, opened, status, kind):
    """A failure of Mem0's model is the event's, by its status, though Mem0 wraps it."""
    provider = opened()
    backend.model.status = status
    with pytest.raises(ProviderError) as failed:
        feed(provider, steps(TURN))
    assert type(failed.value) is kind
    assert "jackalope" not in str(failed.value)


def test_nothing_of_who_was_forgotten_is_left(backend, opened):
    """After an erasure neither the store nor any file beside it has the text."""
    provider = opened(infer=False)
    feed(provider, steps(TurnCompleted(user="I saw a cockatrice.")))
    feed(provider, [SampleStep(2, TurnCompleted(user="I saw a basilisk."), OTHER_USER)])
    assert tables_with(backend.database, "cockatrice")
    assert provider.forget(RecallScope(None, HERE.user, None)).remains == ()
    assert tables_with(backend.database, "cockatrice") == []
    assert tables_with(backend.database, "basilisk")
    files = [path for home in (backend.settings.parent, provider.config.home)
             for path in home.rglob("*") if path.is_file()]  # fmt: skip
    assert not any(b"cockatrice" in path.read_bytes() for path in files)


def test_workers_that_start_at_once_all_have_the_collection(postgres_server, backend, tmp_path):
    """On an empty database several processes make extension and collection, and none fails."""
    told = msgspec.json.decode(backend.settings.read_bytes())
    told["vector_store"]["config"]["connection_string"] = postgres_server.url(
        postgres_server.database()
    )
    settings = tmp_path / "mem0.json"
    settings.write_bytes(msgspec.json.encode(told))
    settings.chmod(0o600)
    code = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "from pathlib import Path\n"
        "from memorybus_providers.base import ProviderConfig\n"
        "from memorybus_providers.mem0 import Mem0Provider\n"
        "options = {'config_file': sys.argv[2]}\n"
        "Mem0Provider(ProviderConfig(name='m', home=Path(sys.argv[3]), options=options)).open()\n"
    )
    arguments = [str(packages_of(NAME)), str(settings), str(tmp_path / "home")]
    command = [sys.executable, "-c", code, *arguments]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    ended = [(one.communicate(timeout=60)[1], one.returncode) for one in started]
    assert [status for _, status in ended] == [0, 0, 0], ended
