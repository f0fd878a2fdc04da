"""Finds providers by name: entry points of the group ``memorybus.providers``, loaded when needed.

A kind is a registered name (``builtin``), ``module:Class``, which names any importable provider
without packaging it, or ``scheme:target``: a provider written for another contract, with an
adapter (``ethos:module:Class``). A module with the name of a scheme cannot be used in a kind.
"""

import difflib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from types import MappingProxyType
from typing import Any, Final

from memorybus.errors import ConfigError, MissingProvider, UnknownSetting, install_command
from memorybus.events import StoreName

from memorybus_providers.base import MemoryProvider, ProviderConfig

GROUP = "memorybus.providers"

_MAX_NAME_CHARS = 100
"""The most characters of an option's name in a message: a name from Redis may have any length."""

SCHEMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ethos": "memorybus_providers.adapters.ethos:host",
        "hermes": "memorybus_providers.adapters.hermes:host",
        "registry": "memorybus_providers.adapters.registry:host",
    }
)
"""The schemes of other contracts, each with a function that returns the class for a target."""

_KEEPING_SCHEME = "registry"
"""The scheme of the contract whose providers may keep a store alone."""


def registered_kinds() -> dict[str, EntryPoint]:
    """Return the registered kinds by name, sorted; nothing is imported."""
    points = sorted(_registered(), key=lambda point: point.name)
    return {point.name: point for point in points}


def load(kind: str) -> type[MemoryProvider]:
    """Return the class of a kind.

    Raises:
        MissingProvider: no package registers that name, or the module or one of its dependencies
            cannot be imported; the message names the remedy.
        ConfigError: what was found is not a provider class, or two packages offer the name.
    """
    scheme, _, target = kind.partition(":")
    if target and scheme in SCHEMES:
        adapted: type[MemoryProvider] = import_named(SCHEMES[scheme])(target)
        return adapted
    point = _entry_point(kind)
    found = _import(point)
    if not (isinstance(found, type) and issubclass(found, MemoryProvider)):
        raise ConfigError(f"provider {kind!r}: {point.value} is not a MemoryProvider class")
    return found


def import_named(path: str) -> Any:
    """Import the object that ``module:name`` names, and return it.

    Raises:
        MissingProvider: the module, one of its dependencies or the name is missing.
        ConfigError: `path` is not of the form ``module:name``.
    """
    return _import(_named_point(path))


def create(kind: str, config: ProviderConfig, recorded: Collection[str] = ()) -> MemoryProvider:
    """Return an unopened instance.

    Args:
        kind: the kind of the provider.
        config: the configuration of the instance.
        recorded: the names of the options that were read from Redis.

    Raises:
        MissingProvider: see `load`.
        UnknownSetting: the provider does not know an option; the message names the nearest one.
        ConfigError: a required option is missing, or an option must not be read from Redis.
    """
    provider = load(kind)
    check_options(provider.get_config_schema(), config)
    _check_recorded(provider, config.name, recorded)
    return provider(config)


def kept_alone(kind: str, config: ProviderConfig) -> frozenset[StoreName]:
    """Return the stores that a provider keeps instead of the agent's own files.

    Only providers of one contract can do this, so providers of other kinds are not even imported.

    Raises:
        MissingProvider, ConfigError: see `create`.
        ProviderError: the provider cannot tell.
    """
    if not kind.startswith(f"{_KEEPING_SCHEME}:"):
        return frozenset()
    provider: Any = create(kind, config)
    stores: frozenset[StoreName] = provider.kept_alone
    return stores


def _check_recorded(provider: type[MemoryProvider], name: str, options: Collection[str]) -> None:
    """Refuse options that only a worker's own settings may set.

    Somebody who can write to Redis must not be able to run code on a worker.
    """
    strange = sorted(set(options) - provider.tunable)
    if strange:
        listed, one = (
            ", ".join(option[:_MAX_NAME_CHARS] for option in strange[:3]),
            strange[0][:_MAX_NAME_CHARS],
        )
        raise ConfigError(
            f"provider {name}: {listed} cannot be set by a copy's record in Redis: what comes from "
            f"there names no path, no code and no command; write it into the memorybus.toml of "
            f'its workers ([provider."{name}"] with {one} = …), and leave out --set {one}'
        )


def schema_of(kind: str) -> Sequence[Mapping[str, Any]] | None:
    """Return the options of a kind, see `MemoryProvider.get_config_schema`.

    Raises:
        MissingProvider, ConfigError: see `load`; or a dependency is missing.
    """
    try:
        return load(kind).get_config_schema()
    except ImportError as error:
        raise MissingProvider(_import_advice(_entry_point(kind), error)) from error


def check_options(schema: Any, config: ProviderConfig) -> None:
    """Check an instance's options against a provider's schema; None allows all.

    Raises:
        UnknownSetting: an option that is not in the schema.
        ConfigError: a required option that is not given.
    """
    if schema is None:
        return
    fields: dict[str, Mapping[str, Any]] = {str(field["key"]): field for field in schema}
    for option in config.options:
        if option not in fields:
            advice = _option_advice(option[:_MAX_NAME_CHARS], list(fields))
            raise UnknownSetting(
                f"provider {config.name}: unknown option {option[:_MAX_NAME_CHARS]!r}; {advice}"
            )
    for option, value in config.options.items():
        choices = fields[option].get("choices") or (value,)
        if value not in choices:
            listed = ", ".join(map(str, choices))
            raise ConfigError(f"provider {config.name}: option {option!r} must be one of: {listed}")
    for key, field in fields.items():
        if field.get("required") and key not in config.options:
            raise ConfigError(
                f"provider {config.name}: option {key!r} is required: {field['description']}"
            )


def _option_advice(option: str, known: Sequence[str]) -> str:
    """Return the nearest options, or all if none is near."""
    near = difflib.get_close_matches(option, known, n=3)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"its options are: {', '.join(known)}" if known else "it takes none"


def _import(point: EntryPoint) -> Any:
    try:
        return point.load()
    except ImportError as error:
        raise MissingProvider(_import_advice(point, error)) from error
    except AttributeError as error:
        raise MissingProvider(f"provider {point.name!r}: {error}") from error


def _entry_point(kind: str) -> EntryPoint:
    return _named_point(kind) if ":" in kind else _registered_point(kind)


def _named_point(kind: str) -> EntryPoint:
    module, _, name = kind.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise ConfigError(f"provider kind {kind!r} must read module:Class")
    return EntryPoint(kind, kind, GROUP)


@cache
def _registered() -> EntryPoints:
    """Return the installed entry points; cached, since a search takes 4 ms or more."""
    return entry_points(group=GROUP)


def _registered_point(kind: str) -> EntryPoint:
    points = {point.value: point for point in _registered().select(name=kind)}
    if not points:
        raise MissingProvider(_name_advice(kind))
    if len(points) > 1:
        raise ConfigError(
            f"provider {kind!r} is offered by {' and '.join(sorted(points))}; "
            "name one of these as the kind"
        )
    return next(iter(points.values()))


def _name_advice(kind: str) -> str:
    names = registered_kinds()
    near = difflib.get_close_matches(kind, names, n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
    return (
        f"no provider of kind {kind!r}; {hint or 'installed: ' + ', '.join(names) + '.'} "
        "A provider of your own is named module:Class."
    )


def _import_advice(point: EntryPoint, error: ImportError) -> str:
    said = f"provider {point.name!r} cannot be imported: {error}"
    if point.dist is None:
        return (
            f"{said}. Is {point.module!r} installed where the workers run? A file is found by "
            f"PYTHONPATH, never by the directory in which a worker is started"
        )
    extras = point.dist.metadata.get_all("Provides-Extra") or []
    extra = point.name if point.name in extras else ""
    return f"{said}. Install it with: {install_command(extra, point.dist.name)}"
