"""What a worker's process reports to a command: kinds, instances, trials, archived events."""

from typing import Any, Literal, TypeAlias

import msgspec

OptionType: TypeAlias = Literal["", "text", "number", "flag", "list"]


class OptionField(msgspec.Struct, frozen=True):
    """One option of a provider, read from its schema (`MemoryProvider.get_config_schema`)."""

    key: str  # its name in the instance's table
    description: str = ""  # its purpose, in one sentence
    default: Any = None  # its value if it is not given
    required: bool = False  # whether it must be given
    choices: tuple[Any, ...] = ()  # the only values that it may have; empty if it may have any
    secret: bool = False  # whether it names the environment variable that holds a secret
    hint: str = ""  # an example, or where a person finds the value
    type: OptionType = ""  # the type of its value; that of the default if ""

    @property
    def kind_of_value(self) -> OptionType:
        if self.type:
            return self.type
        if isinstance(self.default, bool):
            return "flag"
        if isinstance(self.default, int | float):
            return "number"
        return "list" if isinstance(self.default, list | tuple) else "text"


class KindOffer(msgspec.Struct, frozen=True):
    """A kind of provider that could be set up, and what it can do."""

    kind: str  # its name, or ``scheme:target``
    summary: str = ""  # what it is, in one sentence
    delivery: str = ""  # its class (G4)
    placement: str = ""  # "local" or "shared"
    recall: bool = False
    tools: bool = False
    as_of: bool = False
    retracts: bool = False
    # the options that may be set; None if any may be set
    options: tuple[OptionField, ...] | None = ()
    missing: str = ""  # why it cannot run here, with the remedy; empty if it can


class InstanceDescription(msgspec.Struct, frozen=True):
    """Describes an instance, or a copy of one, that is not open."""

    kind: str  # the provider behind it
    delivery: str  # its class (G4)
    placement: str  # "local" or "shared"
    by_home: bool  # whether its state lies in its home, so that another name means another state
    # the options that say where a shared state is, with their values in the settings
    place: dict[str, str]
    # the options that a copy's record may set; others are set in the settings
    tunable: tuple[str, ...] = ()


class TrialTerms(msgspec.Struct, frozen=True):
    """The conditions of a trial of an instance; the memories' owner is by default nobody."""

    wait: float = 10.0  # the seconds until recalls must find what was written
    agent: str = "provider-test"
    user: str = "provider-test"


class TrialStep(msgspec.Struct, frozen=True):
    """One step of a trial of an instance, as the process that made it reports."""

    name: str  # what was tried: ``open``, ``write``, ``recall``, ``forget``
    ok: bool  # whether the step succeeded
    seconds: float  # how long it took
    found: str  # the result; for a failed step the exact error, credentials masked
    fix: str = ""  # what to do; empty if there is nothing to do
    claimed: bool = True  # whether the provider claims to do this; otherwise nothing was tried


class ArchiverRun(msgspec.Struct, frozen=True):
    """The results of one run."""

    place: str  # where the archive is; "" if there is no log, and so no archive
    events: int  # how many events were sealed
    elsewhere: bool  # whether the archive is on another host, so that nothing could be done here
    errors: dict[str, str]  # by name of the partition, the error that kept it from being sealed
    # the partitions that were left to another archiver, which works on them, or died a moment ago
    # (then its lease ends by itself)
    busy: tuple[str, ...] = ()

    @property
    def hindered(self) -> bool:
        """Whether something kept this run from sealing the events that are due."""
        return self.elsewhere or bool(self.errors)

    @property
    def idle(self) -> bool:
        """Whether nothing was due."""
        return not (self.events or self.hindered or self.busy)
