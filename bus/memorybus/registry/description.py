"""What an instance would be, as a worker's process describes it for a command."""

import msgspec


class Described(msgspec.Struct, frozen=True):
    """Describes an instance, or a copy of one, that is not open.

    Attributes:
        kind: the provider behind it.
        delivery: its class (G4).
        placement: "local" or "shared".
        by_home: whether its state lies in its home, so that another name is another state.
        place: the options that say where a shared state is, with their values in the settings.
        handles: the types of events that it uses.
        outside_tools: its tools that a replay does not call.
        tunable: the options that a copy's record may set; others are set in the settings.
    """

    kind: str
    delivery: str
    placement: str
    by_home: bool
    place: dict[str, str]
    handles: tuple[str, ...]
    outside_tools: tuple[str, ...]
    tunable: tuple[str, ...] = ()


class TrialStep(msgspec.Struct, frozen=True):
    """One step of a trial of an instance, as the process that made it tells.

    Attributes:
        name: what was tried: ``open``, ``write``, ``recall``, ``forget``.
        ok: whether it did what it should.
        seconds: how long it took.
        found: what came of it; of a step that failed the exact error, credentials masked.
        fix: what to do; empty if there is nothing to.
    """

    name: str
    ok: bool
    seconds: float
    found: str
    fix: str = ""
