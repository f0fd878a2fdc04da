"""``memorybus provider test``: an instance is opened, written to and asked, beside the lanes."""

from collections.abc import Iterator
from contextlib import suppress

from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LogUnavailable
from memorybus.operations.known_providers import check_configured
from memorybus.operations.stores import Stores
from memorybus.processes.commands import try_instance
from memorybus.registry.description import TrialStep, TrialTerms
from memorybus.registry.homes import home_elsewhere
from memorybus.registry.instances import Instance, live_name


def trial(settings: Settings, name: str, terms: TrialTerms) -> Iterator[TrialStep]:
    """Try the instance that serves `name`; yield each step when it is done.

    It needs no Redis. Where there is one, it is asked which copy serves, and where its state lies.

    Raises:
        ConfigError: the settings do not name it, or its state lies elsewhere.
        MemoryBusError: the process that was to try it ended without a word.
    """
    check_configured(settings, name)
    serves = _serving(settings, name)
    yield from try_instance(settings, name, serves.name, serves.options, terms)


def _serving(settings: Settings, name: str) -> Instance:
    """Return the instance that serves a name, itself without Redis."""
    with suppress(LogUnavailable), Stores(settings) as stores:
        live = live_name(name, stores.instances.live())
        home = home_elsewhere(stores.homes.all().get(live), settings)
        if home is not None:
            raise ConfigError(
                f"the state of {name} lies in {home.path} on {home.host}: run this there"
            )
        if live != name and (copy := stores.instances.get(live)) is not None:
            return copy
    return Instance(name=name, provider=name)
