"""Checks that a name from the command line or the page is a provider's or an instance's."""

from collections.abc import Iterable
from difflib import get_close_matches

from memorybus.config.settings import Settings
from memorybus.errors import ConfigError

from memorybus_console.operations.stores import Stores


def check_provider(stores: Stores, name: str) -> None:
    """Make sure that a provider is configured, or that workers registered it.

    Raises:
        ConfigError: it is unknown.
    """
    _check_known("provider", name, [*stores.settings.providers, *stores.roster.providers()])


def check_instance(stores: Stores, name: str) -> None:
    """Make sure that an instance is configured, registered by workers, or a copy.

    Raises:
        ConfigError: it is unknown.
    """
    known = [*stores.settings.providers, *stores.roster.instances(), *stores.instances.all()]
    _check_known("provider instance", name, known)


def check_configured(settings: Settings, name: str) -> None:
    """Make sure that the settings name an instance, without asking Redis.

    Raises:
        ConfigError: they do not.
    """
    _check_known("provider instance", name, [*settings.providers, *settings.provider])


def _check_known(what: str, name: str, known: Iterable[str]) -> None:
    names = list(dict.fromkeys(known))
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"no {what} {name!r}; there are: {', '.join(names) or 'none'}{hint}")
