"""Providers by name."""

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from memorybus.errors import ConfigError, MissingProvider, UnknownSetting
from memorybus_providers import registry
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.builtin import BuiltinProvider


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


def test_the_shipped_kinds_are_known():
    """The two providers of the distribution are registered under their names."""
    assert {"builtin", "holographic"} <= set(registry.registered_kinds())
    assert list(registry.registered_kinds()) == sorted(registry.registered_kinds())


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


def test_a_missing_dependency_names_what_to_install(offered, monkeypatch):
    """A registered kind whose import fails says so, never with a bare traceback."""
    offered(("cloud", "no_such_sdk.adapter:Cloud"))

    with pytest.raises(MissingProvider, match="No module named 'no_such_sdk'"):
        registry.load("cloud")


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


def test_a_name_offered_twice_is_refused(offered):
    """No package silently takes another's kind over; naming the class decides."""
    offered(("notes", "one:Notes"), ("notes", "two:Notes"))

    with pytest.raises(ConfigError, match="one:Notes and two:Notes"):
        registry.load("notes")


def test_an_unknown_option_names_the_nearest(tmp_path):
    """A misspelt option is an error, not a default."""
    with pytest.raises(UnknownSetting, match="'timeouts'; did you mean 'timeout'"):
        registry.create(f"{__name__}:Named", config(tmp_path, api_key="k", timeouts=3))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (f"{__name__}:Named", "'colour'; its options are: api_key, timeout$"),
        (f"{__name__}:Bare", "'colour'; it takes none$"),
        ("holographic", "'colour'; its options are: embedder"),
        ("builtin", "'colour'; its options are: memory_limit, user_limit$"),
    ],
)
def test_an_unknown_option_like_no_other_names_all(tmp_path, kind, said):
    """Where nothing is near, no guess is made: what there is, or that there is none, is told."""
    with pytest.raises(UnknownSetting, match=said):
        registry.create(kind, config(tmp_path, colour="red"))


def test_a_missing_required_option_is_described(tmp_path):
    """A required option that is not given is an error with its description."""
    with pytest.raises(ConfigError, match="'api_key' is required: The service's key"):
        registry.create(f"{__name__}:Named", config(tmp_path))


def test_options_of_the_schema_are_taken(tmp_path):
    """Known options arrive in the configuration as given."""
    provider = registry.create(f"{__name__}:Named", config(tmp_path, api_key="k"))

    assert provider.config.options == {"api_key": "k"}


def test_without_a_schema_every_option_is_taken(tmp_path):
    """A provider that does not say what it takes is told everything."""
    provider = registry.create(f"{__name__}:Schemaless", config(tmp_path, anything=1))

    assert provider.config.options == {"anything": 1}
