"""Names that people give: is there a provider, or an instance, of that name?"""

from collections.abc import Iterable
from difflib import get_close_matches

from memorybus.errors import ConfigError
from memorybus.operations.stores import Copies


def check_provider(desk: Copies, name: str) -> None:
    """Make sure that a provider is configured, or was served.

    Raises:
        ConfigError: nobody knows it.
    """
    _check("provider", name, [*desk.settings.providers, *desk.roster.providers()])


def check_instance(desk: Copies, name: str) -> None:
    """Make sure that somebody knows an instance: of the settings, registered, or a copy.

    Raises:
        ConfigError: nobody does.
    """
    known = [*desk.settings.providers, *desk.roster.instances(), *desk.instances.all()]
    _check("provider instance", name, known)


def _check(what: str, name: str, known: Iterable[str]) -> None:
    names = list(dict.fromkeys(known))
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"no {what} {name!r}; there are: {', '.join(names) or 'none'}{hint}")
