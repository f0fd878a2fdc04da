"""What an instance would be: a worker's process tells it, commands read it."""

import msgspec


class Described(msgspec.Struct, frozen=True):
    """An instance, or a copy of one, that is not open.

    Attributes:
        kind: the provider behind it.
        delivery: its class (G4).
        placement: "local" or "shared".
        by_home: whether its state lies in its home, so that another name is another state.
        place: the options that say where a shared state is, and what they are, as text, for the
            instance of the settings.
        handles: the types of events that it does something with.
        outside_tools: its tools that a replay leaves alone.
        tunable: the options that a copy's record may set; others stand in the settings.
    """

    kind: str
    delivery: str
    placement: str
    by_home: bool
    place: dict[str, str]
    handles: tuple[str, ...]
    outside_tools: tuple[str, ...]
    tunable: tuple[str, ...] = ()
