"""Providers by name."""

import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.services.models import model
from memorybus.errors import ConfigError, MissingProvider, Unavailable, UnknownSetting
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.builtin import BuiltinProvider
from memorybus_providers.embedding import choice, models
from memorybus_providers.embedding.options import MeaningOptions, cache_of, read_meaning
from memorybus_providers.holographic import HolographicProvider


class Named(MemoryProvider):
    """A provider that is named by module and class."""

    kind = "named"

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        return (
            {"key": "api_key", "description": "The service's key.", "required": True},
            {"key": "timeout", "description": "Seconds.", "default": 5},
        )


class Bare(MemoryProvider):
    """A provider that takes no option."""

    kind = "bare"

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        return ()


class Schemaless(MemoryProvider):
    """A provider that takes any option."""

    kind = "schemaless"


NOT_A_PROVIDER = "text"


def config(tmp_path: Path, **options: Any) -> ProviderConfig:
    """Return an instance's configuration."""
    return ProviderConfig(name="mine", home=tmp_path, options=options)


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace what is installed by given entry points."""

    def offer(*points: tuple[str, str]) -> None:
        found = EntryPoints(EntryPoint(name, value, registry.GROUP) for name, value in points)
        monkeypatch.setattr(registry, "_registered", lambda: found)

    return offer


def test_a_registered_kind_is_loaded(tmp_path):
    """A kind gives its class, and an instance that has not touched the disk."""
    home = tmp_path / "home"

    provider = registry.create("builtin", config(home, memory_limit=10))

    assert registry.load("builtin") is BuiltinProvider
    assert type(provider) is BuiltinProvider
    assert not home.exists()


def test_a_class_can_be_named_directly():
    """module:Class needs no packaging."""
    assert registry.load(f"{__name__}:Named") is Named


@pytest.mark.parametrize(
    ("kind", "error", "says"),
    [
        ("builtins", MissingProvider, "did you mean 'builtin'?"),
        ("zzz", MissingProvider, "installed: builtin"),
        ("zzz", MissingProvider, "module:Class"),
        ("no_such_module:Thing", MissingProvider, "Is 'no_such_module' installed"),
        (f"{__name__}:Absent", MissingProvider, "Absent"),
        (f"{__name__}:NOT_A_PROVIDER", ConfigError, "is not a MemoryProvider class"),
        ("json:JSONDecoder", ConfigError, "is not a MemoryProvider class"),
        ("os; rm:x", ConfigError, "must read module:Class"),
        (":", ConfigError, "must read module:Class"),
    ],
)
def test_what_cannot_be_loaded_is_named(kind, error, says):
    """The message names the kind, what is wrong with it and the remedy."""
    with pytest.raises(error) as failure:
        registry.load(kind)

    assert says in str(failure.value)
    assert kind in str(failure.value)


@pytest.mark.parametrize(
    ("offers", "error", "said"),
    [
        (["no_such_sdk.adapter:Cloud"], MissingProvider, "No module named 'no_such_sdk'"),
        (["one:Notes", "two:Notes"], ConfigError, "one:Notes and two:Notes"),
    ],
)
def test_what_is_registered_wrongly_is_named(offered, offers, error, said):
    """An import that fails says so; no package silently takes another's kind over."""
    offered(*(("notes", value) for value in offers))

    with pytest.raises(error, match=said):
        registry.load("notes")


@pytest.mark.parametrize(("extras", "advice"), [(["cloud"], "'acme[cloud]'"), (None, "'acme'")])
def test_the_advice_names_the_extra(extras, advice):
    """The package that registered the kind is named, with its extra where it has one."""

    class Metadata:
        def get_all(self, name: str) -> list[str] | None:
            return extras if name == "Provides-Extra" else None

    class Package:
        name = "acme"
        metadata = Metadata()

    class Point:
        name = "cloud"
        dist = Package()

    said = registry._import_advice(Point(), ImportError("No module named 'sdk'"))

    assert said.endswith(f"pip install {advice}")


@pytest.mark.parametrize(
    ("kind", "option", "said"),
    [
        (f"{__name__}:Named", "timeouts", "'timeouts'; did you mean 'timeout'"),
        (f"{__name__}:Named", "colour", "'colour'; its options are: api_key, timeout$"),
        (f"{__name__}:Bare", "colour", "'colour'; it takes none$"),
        ("holographic", "colour", "'colour'; its options are: embedder"),
        ("builtin", "colour", "'colour'; its options are: memory_limit, user_limit$"),
    ],
)
def test_an_unknown_option_names_the_nearest_or_all(tmp_path, kind, option, said):
    """Where nothing is near, no guess is made: what there is, or that there is none, is told."""
    with pytest.raises(UnknownSetting, match=said):
        registry.create(kind, config(tmp_path, **{option: "red"}))


def test_a_missing_required_option_is_described(tmp_path):
    """A required option that is not given is an error with its description."""
    with pytest.raises(ConfigError, match="'api_key' is required: The service's key"):
        registry.create(f"{__name__}:Named", config(tmp_path))


@pytest.mark.parametrize(
    ("kind", "options"), [("Named", {"api_key": "k"}), ("Schemaless", {"x": 1})]
)
def test_options_are_taken_as_given(tmp_path, kind, options):
    """Those of the schema are, and any of a provider that does not say what it takes."""
    provider = registry.create(f"{__name__}:{kind}", config(tmp_path, **options))

    assert provider.config.options == options


NAME = "sentence-transformers/all-MiniLM-L6-v2"
SOURCE = "models--Qdrant--all-MiniLM-L6-v2-onnx"
"""The folder in which fastembed keeps that model."""


def named(home: Path) -> ProviderConfig:
    """Return the configuration of an instance that names the model."""
    options = {"embedder": f"fastembed:{NAME}"}
    return ProviderConfig(name="notes", home=home, options=options, models=home / "models")


def test_a_model_that_was_not_fetched_is_not_fetched_at_run_time(tmp_path, monkeypatch):
    """The first text that needs the model gets an error that names the next command."""
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("it asks the network"))
    config = named(tmp_path)
    embedder = choice.make_embedder(read_meaning(config, MeaningOptions), config)

    with pytest.raises(Unavailable, match=r"is not on this host: .*memorybus provider setup"):
        embedder.embed(["Nora lives in Bergen"])


@pytest.mark.parametrize("act", ["open", "fetch"])
def test_a_missing_library_is_named_with_what_installs_it(act, tmp_path, monkeypatch):
    """Without fastembed the error names the extra."""
    monkeypatch.setattr(models, "find_spec", lambda name: None if name == "fastembed" else name)
    monkeypatch.setitem(__import__("sys").modules, "fastembed", None)

    with pytest.raises(MissingProvider, match=r"needs fastembed.*\[fastembed\]"):
        getattr(HolographicProvider(named(tmp_path)), act)()


@pytest.mark.slow(reason="loads fastembed")
def test_an_unknown_name_cannot_be_fetched(tmp_path):
    """Set-up fails for a name that fastembed does not know, before any request."""
    config = ProviderConfig(name="notes", home=tmp_path, options={"embedder": "fastembed:nobody/x"})

    with pytest.raises(Unavailable, match="nobody/x cannot be fetched"):
        HolographicProvider(config).fetch()


@pytest.mark.servers
def test_a_fetched_model_makes_vectors(tmp_path):
    """What stands in fastembed's cache is used without a network: near texts have near vectors."""
    config = named(tmp_path)
    revision = cache_of(config) / SOURCE / "snapshots" / "1"
    shutil.copytree(model("minilm"), revision)
    (revision.parents[1] / "refs").mkdir()
    (revision.parents[1] / "refs" / "main").write_text("1")
    embedder = choice.make_embedder(read_meaning(config, MeaningOptions), config)

    asked = embedder.embed(["Where does Nora live?"], asked=True)[0]
    near, far = embedder.embed(["Nora's home is in Bergen", "The oven is broken"])

    assert asked.dtype == np.float32
    assert asked @ near > asked @ far + 0.2
