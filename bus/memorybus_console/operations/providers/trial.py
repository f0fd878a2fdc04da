"""``memorybus provider test``: opens an instance, writes to it and asks it, without its lanes."""

from collections.abc import Iterator
from contextlib import suppress

from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LogUnavailable
from memorybus.processes.commands import try_instance
from memorybus.processes.reports import TrialStep, TrialTerms
from memorybus.registry.homes import home_elsewhere
from memorybus.registry.instances import Instance, live_name

from memorybus_console.operations.known_providers import check_configured
from memorybus_console.operations.stores import Stores


def try_provider(settings: Settings, name: str, terms: TrialTerms) -> Iterator[TrialStep]:
    """Try the live instance of `name`; yield each step when it is done.

    This needs no Redis. If there is one, it says which copy is live, and where its state is.

    Raises:
        ConfigError: the settings do not name it, or its state lies elsewhere.
        MemoryBusError: the process that tries it ended without a result.
    """
    check_configured(settings, name)
    serves = _serving_instance(settings, name)
    yield from try_instance(settings, name, serves.name, serves.options, terms)


def _serving_instance(settings: Settings, name: str) -> Instance:
    """Return the live instance of a name; the name's own instance if Redis is away."""
    with suppress(LogUnavailable), Stores(settings) as stores:
        live = live_name(name, stores.instances.live())
        home = home_elsewhere(stores.homes.all().get(live), settings)
        if home is not None:
            raise ConfigError(
                f"the state of {name} is in {home.path} on {home.host}: run this there"
            )
        if live != name and (copy := stores.instances.get(live)) is not None:
            return copy
    return Instance(name=name, provider=name)
