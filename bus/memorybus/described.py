"""What an instance would be: a worker's process tells it, commands read it."""

import msgspec


class Described(msgspec.Struct, frozen=True):
    """An instance, or a copy of one, that is not open.

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
