"""Chooses who takes part in the demo: providers, and the person whose memories they keep."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.ids import NewId, new_mark
from memorybus.processes.commands import describe_instance

from memorybus_console.operations.demo.play import PLAY

PROVIDERS = ("builtin", "holographic")


class Cast(msgspec.Struct, frozen=True):
    """The providers that take part in the demo, and its invented person.

    Attributes:
        settings: name these providers, with their tables and secrets; the demo uses nothing else of
            them.
        user: the person.
        made: what the demo creates on a server only for itself, by provider.
    """

    settings: Settings
    user: str = PLAY.user
    made: dict[str, str] = {}

    @property
    def outside(self) -> tuple[str, ...]:
        """The providers that may keep something outside of the demo's directory."""
        kind = self.settings.provider_kind
        return tuple(name for name in self.settings.providers if kind(name) not in PROVIDERS)


PACKAGED: Final = Cast(Settings(providers=PROVIDERS))
"""The two providers of the package that need no service."""


def choose_cast(settings: Settings, names: Sequence[str], make_mark: NewId = new_mark) -> Cast:
    """Return a cast of the named providers: instances of the user's settings, or else kinds.

    The demo's person then gets a unique name, since the server may hold real people. Where a server
    also keeps checkpoints, the demo gets a place of its own there: those checkpoints belong to
    another log.

    Args:
        settings: the user's settings.
        names: the instances; without names, the two of the package take part.
        make_mark: makes the unique part of names.

    Raises:
        MissingProvider, ConfigError: a provider cannot be made here, or not separately from the
            user's own.
    """
    if not names:
        return PACKAGED
    mark, tables, made = make_mark(), dict[str, dict[str, Any]](), dict[str, str]()
    for name in names:
        place = _own_place_options(settings, name, mark)
        tables[name] = {**settings.provider.get(name, {}), **place}
        if place:
            made[name] = ", ".join(f"{option} {value!r}" for option, value in place.items())
    theirs = msgspec.structs.replace(settings, providers=tuple(names), provider=tables)
    return Cast(theirs, f"{PLAY.user}-{mark}", made)


def _own_place_options(settings: Settings, name: str, mark: str) -> dict[str, str]:
    """Return the options that separate a demo's checkpoints from those of the user's own log.

    Raises:
        ConfigError: no option says where checkpoints are.
    """
    if settings.provider_kind(name) in PROVIDERS:
        return {}
    what = describe_instance(settings, name)
    if what.delivery != "transactional" or what.by_home:
        return {}
    if not what.place:
        raise ConfigError(
            f"{name} keeps checkpoints on its server, and no option says where: a demo would take "
            f"the place of your own log's"
        )
    return dict.fromkeys(what.place, f"mb_demo_{mark}")
