"""Providers of services, each with a fake of it: what is kept, what goes wrong, what follows."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.providers.service_opening import Opener, opener
from helpers.providers.services import SERVICES, Service
from helpers.services.faulty_http import Fault
from memorybus.errors import (
    ConfigError,
    MissingProvider,
    Permanent,
    ProviderError,
    Transient,
    Unavailable,
    install_command,
)
from memorybus.events import Delegated, MemoryWritten, TurnCompleted
from memorybus.testing import FakeClock
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig, RecallScope
from memorybus_providers.contract.samples import (
    HERE,
    OTHER_USER,
    SampleStep,
    feed,
    hook_context,
    recall_context,
    steps,
)
from memorybus_providers.dispatch import bind

SAID = "I keep a wolpertinger."
TURN = TurnCompleted(user=SAID, assistant="Noted.", ordinal=0)
NOTE = MemoryWritten(action="add", store="user", content="Keeps a wolpertinger.")
TASK = Delegated(task="find a wolpertinger", result="found")


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> Service:
    if request.param == "honcho":
        pytest.importorskip("honcho", reason="needs the extra honcho")
    return SERVICES[request.param]


@pytest.fixture
def server(service: Service) -> Iterator[Any]:
    with service.serving() as running:
        yield running


@pytest.fixture
def open_one(service: Service, server: Any, tmp_path: Path) -> Iterator[Opener[MemoryProvider]]:
    def kind(config: ProviderConfig) -> MemoryProvider:
        return registry.create(service.kind, config)

    with opener(kind, tmp_path, base_url=server.url, **service.options) as make:
        yield make


def copies(server: Any) -> int:
    """Return how often it holds what was said."""
    return sum("wolpertinger" in text for text in server.texts())


@pytest.mark.parametrize("event", [TURN, NOTE, TASK], ids=["turn", "note", "delegation"])
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("lose", Transient),
        ("half", Transient),
        ("late", Transient),
        (500, Transient),
        (409, Transient),
        (503, Unavailable),
        (401, Unavailable),
        (422, Permanent),
    ],
)
def test_a_write_that_failed_and_comes_again_is_there_once(
    service, server, open_one, event, kind, error
):
    """Whatever befell a write, its error tells what to do; done again, it is there once (G4).

    What is in doubt is asked for first where that is how the provider delivers.
    """
    provider = open_one()
    (step,) = steps(event)
    server.faults = [service.fault(kind)]
    ctx = hook_context(step, deadline=0.5 if kind == "late" else 30.0)
    with pytest.raises(ProviderError) as failed:
        bind(provider)(event, ctx)
    assert type(failed.value) is error
    held = provider.delivery == "lookup" and provider.knows(step.event_id, ctx)
    assert held is (provider.delivery == "lookup" and kind in {"lose", "half", "late"})
    if not held:
        feed(provider, [step])
    assert copies(server) == 1
    assert len(provider.prefetch("wolpertinger", recall_context(HERE))) == 1


def note(action: Any, content: str = "", old: str = "", store: Any = "user") -> MemoryWritten:
    """Return a write to a store."""
    return MemoryWritten(action=action, store=store, content=content, old_text=old)


def remembered(provider: MemoryProvider) -> list[str]:
    """Return what is recalled of tea, sorted."""
    found = provider.prefetch("tea coffee cat Ulm Bonn", recall_context(HERE))
    return sorted(memory.text for memory in found)


def test_a_write_takes_the_place_of_what_it_names(open_one):
    """The one entry of that store that it names, also where all comes again; others stay."""
    provider = open_one()
    told = steps(
        note("add", "Likes tea."),
        note("add", "Likes tea, says the log.", store="memory"),
        note("replace", "Likes coffee.", "tea"),
        note("add", "Has a cat."),
        note("remove", old="cat"),
    )
    feed(provider, told)
    assert remembered(provider) == ["Likes coffee.", "Likes tea, says the log."]


def test_what_names_several_entries_touches_none(open_one):
    """A replacement that could mean different entries adds its text; a removal does nothing."""
    provider = open_one()
    entries = ("Likes tea.", "Grows tea.", "Lives in Ulm.")
    vague = (note("replace", "Sells tea.", "tea"), note("remove", old="tea"), note("remove"))
    feed(provider, steps(*(note("add", text) for text in entries), *vague))
    assert remembered(provider) == sorted([*entries, "Sells tea."])


def test_another_prefix_is_another_state(open_one):
    """G8: two instances on one server are apart, also for who may see everybody's."""
    feed(open_one(), steps(TURN))
    copy, everyone = open_one(prefix="copy"), recall_context(RecallScope(None, None, None))
    assert copy.prefetch("wolpertinger", everyone) == []
    feed(copy, steps(TURN))
    assert len(copy.prefetch("wolpertinger", everyone)) == 1


@pytest.mark.parametrize("kind", ["lose", "half", "late", 500])
def test_a_recall_that_fails_says_so(service, server, open_one, kind):
    """It raises instead of returning nothing, which would count as an answer."""
    provider = open_one()
    feed(provider, steps(TURN))
    server.faults = [Fault(service.search, kind)]
    with pytest.raises(Transient):
        provider.prefetch("wolpertinger", recall_context(HERE, deadline=0.5))


def test_a_rate_limit_is_waited_for(service, server, open_one):
    """For as long as ``Retry-After`` says no request is made, whosever event it is for (429)."""
    clock = FakeClock()
    provider = open_one(clock)
    (step,) = steps(TURN)
    server.faults = [service.fault(429, {"Retry-After": "7"})]
    with pytest.raises(Unavailable, match="429"):
        feed(provider, [step])
    asked = len(server.asked)
    with pytest.raises(Unavailable, match=r"no call for 7\.0 s more"):
        feed(provider, [SampleStep(2, TURN, OTHER_USER)])
    assert len(server.asked) == asked
    clock.advance(7.0)
    feed(provider, [step])
    assert copies(server) == 1


def test_a_server_that_is_away_is_unavailable(open_one):
    """A refused connection is no event's fault."""
    provider = open_one(base_url="http://127.0.0.1:1")
    with pytest.raises(Unavailable):
        provider.prefetch("stamps", recall_context(HERE))
    with pytest.raises(Unavailable):
        feed(provider, steps(TURN))


def test_a_wrong_address_is_not_taken_for_an_empty_store(server, open_one):
    """A 404 of a route says that the address is wrong, and not that nothing is kept."""
    provider = open_one(base_url=f"{server.url}/elsewhere")
    with pytest.raises(Unavailable, match="404"):
        provider.prefetch("stamps", recall_context(HERE))


def test_the_key_is_sent_and_in_no_error(service, server, open_one, monkeypatch):
    """A key of the environment goes to the server, and is masked where it is repeated."""
    monkeypatch.setenv("SERVICE_TEST_KEY", "very-secret")
    provider = open_one(api_key_env="SERVICE_TEST_KEY")
    server.faults = [service.fault(401, body="bad key very-secret")]
    with pytest.raises(Unavailable, match=r"bad key \*\*\*") as failed:
        feed(provider, steps(TURN))
    assert set(server.keys) == {service.key.format("very-secret")}
    assert "very-secret" not in f"{failed.value} {provider.config!r}"


def test_a_key_in_a_file_that_others_may_read_is_refused(open_one, tmp_path):
    """A file with a key is its owner's alone."""
    file = tmp_path / "key"
    file.write_text("very-secret")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        open_one(api_key_file=str(file))


def test_a_refusal_does_not_repeat_what_was_said(service, server, open_one):
    """The server's 422 repeats the text that it refuses; the error does not."""
    provider = open_one()
    why = "too odd" if service.why == "error" else [{"msg": "too odd", "input": SAID}]
    server.faults = [service.fault(422, body=why)]
    with pytest.raises(Permanent, match="too odd") as failed:
        feed(provider, steps(TURN))
    assert "wolpertinger" not in str(failed.value)


def test_health_asks_the_server(server, open_one):
    """A server that is well says nothing, and holds nothing new; a refused key is told."""
    provider = open_one()
    assert provider.health(5.0) == ""
    server.faults = [Fault("", 401)]
    with pytest.raises(Unavailable, match="401"):
        provider.health(5.0)
    assert server.texts() == []


def test_no_client_is_imported_before_an_instance_is_opened(service):
    """Looking at the provider's options loads no client."""
    code = (
        "import sys; from memorybus_providers import registry;"
        f"registry.load({service.kind!r}).get_config_schema();"
        f"sys.exit({service.heavy!r} in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("kind", "extra", "lacking"),
    [
        ("hindsight", "hindsight", "hindsight_client"),
        ("honcho", "honcho", "honcho"),
        ("mentisdb", "mentisdb", "urllib3"),
    ],
)
def test_without_its_client_the_remedy_is_named(tmp_path, monkeypatch, kind, extra, lacking):
    """Options and tools can be shown without it; opening says what to install."""
    for name in [name for name in sys.modules if name.startswith(f"memorybus_providers.{kind}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "memorybus_providers.remote.http", raising=False)
    monkeypatch.setitem(sys.modules, lacking, None)
    provider = registry.create(kind, ProviderConfig(name=kind, home=tmp_path))
    assert provider.get_tool_schemas()
    with pytest.raises(MissingProvider, match=re.escape(install_command(extra))):
        provider.open()


OPTIONS = [
    *(
        (kind, options, named)
        for kind in ("hindsight", "mem0-server", "honcho", "mentisdb")
        for options, named in (
            ({"base_url": "localhost"}, "http"),
            ({"base_url": "ftp://x"}, "base_url"),
            ({"prefix": "Ours_"}, "prefix"),
            ({"timeout": 0}, "timeout"),
            ({"strange": 1}, "strange"),
        )
    ),
    ("hindsight", {"recall_tokens": 0}, "recall_tokens"),
    ("hindsight", {"recall_budget": "huge"}, "recall_budget"),
    ("mem0-server", {"results": 0}, "results"),
    ("mem0-server", {"infer": "maybe"}, "infer"),
    ("mentisdb", {"results": 0}, "results"),
    ("honcho", {"results": 0}, "results"),
    ("honcho", {"dialectic_timeout": 0}, "dialectic_timeout"),
    ("honcho", {"dialectic_per_day": -1}, "dialectic_per_day"),
    ("honcho", {"context_ttl": -1}, "context_ttl"),
]


@pytest.mark.parametrize(("kind", "options", "named"), OPTIONS)
def test_wrong_options_are_refused_by_name(tmp_path, kind, options, named):
    """An option that cannot be meant is refused before anything is made or asked."""
    with pytest.raises(ConfigError, match=named):
        registry.create(kind, ProviderConfig(name="service", home=tmp_path, options=options))
