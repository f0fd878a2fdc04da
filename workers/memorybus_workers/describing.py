"""What an instance would be, told to commands, which may not import providers themselves."""

from collections.abc import Mapping
from typing import Any

import msgspec
from memorybus.clock import SYSTEM
from memorybus.settings import Settings

from memorybus_workers.instances import make


class Described(msgspec.Struct, frozen=True):
    """An instance that is not open; the shape of `memorybus.surfaces.children.Described`.

    Attributes:
        kind: the provider behind it.
        delivery: its class (G4).
        placement: "local" or "shared".
        fresh: whether a copy made so has a state of its own, apart from the original's.
        fresh_options: the options that would give it one.
        handles: the types of events that it does something with.
        outside_tools: its tools that a replay leaves alone.
    """

    kind: str
    delivery: str
    placement: str
    fresh: bool
    fresh_options: tuple[str, ...]
    handles: tuple[str, ...]
    outside_tools: tuple[str, ...]


def describe(settings: Settings, provider: str, name: str, options: Mapping[str, Any]) -> Described:
    """Return what a copy of an instance would be, or the instance itself under its own name.

    Raises:
        MissingProvider, ConfigError: it cannot be made.
    """
    kind = "" if name == provider else provider
    made = make(settings, name, SYSTEM, kind=kind, options=options)
    can = made.capabilities
    handles = {event.__name__ for event in can.handles} | ({"ToolCalled"} if can.tools else set())
    return Described(
        kind=settings.provider_kind(provider),
        delivery=made.delivery,
        placement=made.placement,
        fresh=made.fresh_by_home or any(option in options for option in made.fresh_options),
        fresh_options=tuple(made.fresh_options),
        handles=tuple(sorted(handles)),
        outside_tools=tuple(sorted(can.outside_tools)),
    )
