"""Provider instances by name, made as the settings say."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from memorybus.clock import Clock
from memorybus.errors import MissingProvider
from memorybus.settings import Settings
from memorybus.testing import CrashPoint, no_crash
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.registry import create

_AS_CONFIGURED: Mapping[str, Any] = MappingProxyType({})


def make(
    settings: Settings,
    name: str,
    clock: Clock,
    crash: CrashPoint = no_crash,
    kind: str = "",
    *,
    options: Mapping[str, Any] = _AS_CONFIGURED,
    answering: bool = True,
) -> MemoryProvider:
    """Return an unopened instance.

    Args:
        settings: see `Settings`.
        name: the instance's name; its home and options are found by it.
        clock: time.
        crash: crash points of fault tests.
        kind: the provider instance whose kind and options to use, if not its own (a copy).
        options: what differs from these options.
        answering: whether it serves agents (see `ProviderConfig`).

    Raises:
        MissingProvider: nobody knows the kind, or it is not available here.
        ConfigError: wrong options.
    """
    configured = kind or name
    config = ProviderConfig(
        name=name,
        home=settings.provider_home(name),
        options=settings.provider_options(configured) | dict(options),
        stands_for=kind,
        answering=answering,
        clock=clock,
        crash=crash,
    )
    provider = create(settings.provider_kind(configured), config)
    if not provider.is_available(config):
        raise MissingProvider(
            f"provider {name} says that it is not available here; its options or a program it "
            f"needs are missing (see its documentation)"
        )
    return provider
