"""Provider instances by name, made as the settings say."""

import contextlib
from collections.abc import Sequence

from memorybus.clock import Clock
from memorybus.errors import MissingProvider
from memorybus.settings import Settings
from memorybus.testing import CrashPoint, no_crash
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.registry import create


def make(
    settings: Settings, name: str, clock: Clock, crash: CrashPoint = no_crash, kind: str = ""
) -> MemoryProvider:
    """Return an unopened instance.

    Args:
        settings: see `Settings`.
        name: the instance's name; its home and options are found by it.
        clock: time.
        crash: crash points of fault tests.
        kind: the provider instance whose kind and options to use, if not its own (replay).

    Raises:
        MissingProvider: nobody knows the kind, or it is not available here.
        ConfigError: wrong options.
    """
    configured = kind or name
    config = ProviderConfig(
        name=name,
        home=settings.provider_home(name),
        options=settings.provider_options(configured),
        stands_for=kind,
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


class Instances:
    """Instances that recall, opened when first asked for. Belongs to one thread.

    Args:
        settings: see `Settings`.
        clock: time.
        served: the only names there are: a job's arguments come from whoever can write to Redis.
        crash: crash points of fault tests.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        served: Sequence[str],
        crash: CrashPoint = no_crash,
    ) -> None:
        """Open nothing yet."""
        self._crash = crash
        self._served = frozenset(served)
        self._settings = settings
        self._clock = clock
        self._opened: dict[str, MemoryProvider] = {}

    def opened(self, name: str) -> MemoryProvider:
        """Return the open instance of a name.

        Raises:
            MissingProvider, ConfigError: see `make`.
            Exception: what opening raises; the next call tries again.
        """
        if name not in self._served:
            raise MissingProvider(f"{name[:40]!r} is not served here")
        if name not in self._opened:
            provider = make(self._settings, name, self._clock, self._crash)
            self._opened[name] = provider  # first: what is half open is closed by `forget`
            provider.open()
        return self._opened[name]

    def forget(self, name: str) -> None:
        """Close an instance; the next call opens another."""
        provider = self._opened.pop(name, None)
        if provider is not None:
            with contextlib.suppress(Exception):
                provider.shutdown()

    def shutdown(self) -> None:
        """Close all of them."""
        for provider in self._opened.values():
            with contextlib.suppress(Exception):
                provider.shutdown()
        self._opened.clear()
