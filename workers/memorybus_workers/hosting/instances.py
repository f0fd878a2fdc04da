"""Makes provider instances by name, as the settings describe them."""

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from memorybus.clock import Clock
from memorybus.config.settings import LIMITS, CallLimits, Settings
from memorybus.errors import ConfigError, MemoryBusError, MissingProvider
from memorybus.events import StoreName
from memorybus.testing import CrashPoint, no_crash
from memorybus.text.redact import describe_error
from memorybus_providers.base import MemoryProvider, ProviderConfig, Spend
from memorybus_providers.registry import create, kept_alone, load

if TYPE_CHECKING:  # what commands ask about an instance needs no Redis, and is told sooner
    from memorybus_workers.lanes.context import Role

_log = logging.getLogger("memorybus")
_AS_CONFIGURED: Mapping[str, Any] = MappingProxyType({})


def make_instance(
    settings: Settings,
    name: str,
    clock: Clock,
    crash: CrashPoint = no_crash,
    kind: str = "",
    *,
    options: Mapping[str, Any] = _AS_CONFIGURED,
    answering: bool = True,
    spend: Spend | None = None,
) -> MemoryProvider:
    configured = kind or name
    limits = settings.provider_limits(configured)  # a wrong one is reported before it is served
    own = settings.provider_options(name) if kind else {}
    made = load(settings.provider_kind(configured))
    config = ProviderConfig(
        name=name,
        home=settings.provider_home(name),
        options=settings.provider_options(configured) | dict(options) | own,
        models=settings.models_dir,
        stands_for=kind,
        answering=answering,
        kept_elsewhere=_stores_kept_alone(settings, clock) if made.mirrors else frozenset(),
        clock=clock,
        crash=crash,
        spend=spend,
        zone=settings.zone,
        derive_every_turns=_cadence(settings, configured) if made.derives else 0,
        derivers=settings.derivers,
    )
    provider = create(settings.provider_kind(configured), config, options.keys())
    _check_obeys(provider, limits)
    return _require_available(provider)


def _check_obeys(provider: MemoryProvider, limits: CallLimits) -> None:
    """Refuse limits for an instance whose calls cannot be limited."""
    if provider.delivery == "transactional" and limits != CallLimits():
        raise ConfigError(
            f"provider {provider.config.name}: its calls cannot be limited, because each one is a "
            f"transaction of a whole batch; delete {' and '.join(LIMITS)} from its table"
        )


def _require_available(provider: MemoryProvider) -> MemoryProvider:
    if not provider.is_available(provider.config):
        raise MissingProvider(
            f"provider {provider.config.name} is not available here; its options or "
            f"a program it needs are missing (see its documentation)"
        )
    return provider


def deriving_provider(settings: Settings) -> str:
    """Return the first instance that keeps facts, of whose sessions conclusions are made."""
    return next((name for name in settings.providers if _derives(settings, name)), "")


def _derives(settings: Settings, name: str) -> bool:
    try:
        return load(settings.provider_kind(name)).derives
    except MemoryBusError:  # it is reported where the instance is made
        return False


def _cadence(settings: Settings, name: str) -> int:
    derives = bool(settings.derivers) and name == deriving_provider(settings)
    return settings.derive_every_turns if derives else 0


def _stores_kept_alone(settings: Settings, clock: Clock) -> frozenset[StoreName]:
    """Return the stores that a provider of the settings keeps in place of the agent's own files."""
    found = frozenset[StoreName]()
    for name in settings.providers:
        home, options = settings.provider_home(name), settings.provider_options(name)
        config = ProviderConfig(name=name, home=home, options=options, clock=clock)
        try:
            found |= kept_alone(settings.provider_kind(name), config)
        except Exception as error:  # one provider's mistake must not stop another one
            why = describe_error(error)
            _log.warning("provider %s cannot list the stores that it alone keeps: %s", name, why)
    return found


def make_copy(
    settings: Settings,
    name: str,
    provider: str,
    clock: Clock,
    crash: CrashPoint = no_crash,
    *,
    options: Mapping[str, Any],
    answering: bool = True,
    spend: Spend | None = None,
) -> MemoryProvider:
    """Return an unopened copy of an instance of the settings, with a state of its own."""
    made = make_instance(
        settings, name, clock, crash, provider, options=options, answering=answering, spend=spend
    )
    here = place_of(made.config.options, made)
    taken = here == place_of(settings.provider_options(provider), made)
    if here and taken and not made.fresh_by_home:
        raise ConfigError(
            f"{name} would write to the same place as {provider}; name another place in the "
            f'memorybus.toml of this worker: [provider."{name}"] with {" or ".join(here)} = …'
        )
    return made


def make_in_role(
    settings: Settings, name: str, role: "Role", clock: Clock, crash: CrashPoint = no_crash
) -> MemoryProvider:
    if role.provider == name:
        return make_instance(settings, name, clock, crash, answering=role.answering)
    return make_copy(
        settings,
        name,
        role.provider,
        clock,
        crash,
        options=role.options,
        answering=role.answering,
    )


def place_of(options: Mapping[str, Any], made: MemoryProvider) -> dict[str, str]:
    schema = made.get_config_schema() or ()
    defaults = {str(field["key"]): field.get("default", "") for field in schema}
    return {name: str(options.get(name, defaults.get(name, ""))) for name in made.fresh_options}
