"""Why an instance's lanes stand still: on somebody's word, or for a moment of a command. Pure."""

import msgspec


class InstancePause(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an instance's lanes stand still.

    Attributes:
        reason: why, for people.
        by: who.
        at: since when (wall time, milliseconds).
        candidate: the copy for which a command holds it for a while; "" for every other hold.
        under: the other hold over which a command's stands: it holds on afterwards.
    """

    reason: str = ""
    by: str = ""
    at: int = 0
    candidate: str = ""
    under: "InstancePause | None" = None


def lasting_pause(hold: InstancePause | None) -> InstancePause | None:
    """Return what holds an instance when no command does so any more."""
    return hold.under if hold is not None and hold.candidate else hold


def over_lasting(known: InstancePause | None, why: InstancePause) -> InstancePause:
    """Return a command's hold of an instance that may be held otherwise, too."""
    return msgspec.structs.replace(why, under=lasting_pause(known))


def beside_command(known: InstancePause | None, why: InstancePause) -> InstancePause:
    """Return somebody's hold of an instance, beside a command's; who came first stays."""
    if lasting_pause(known) is not None or known is None:
        return known or why
    return msgspec.structs.replace(known, under=why)


def command_part(known: InstancePause | None) -> InstancePause | None:
    """Return what is left of a hold when nobody but a command holds an instance any more."""
    if known is None or not known.candidate:
        return None
    return msgspec.structs.replace(known, under=None)


def command_pause(what: str, provider: str, candidate: str, by: str, at: int) -> InstancePause:
    """Return how a command holds instances for a copy: who reads it knows what was begun."""
    return InstancePause(f"{what} of {provider}: {candidate} is prepared", by, at, candidate)


def prepared_copy(hold: InstancePause | None) -> str:
    """Return the copy for which a command holds an instance; "" if no such command does."""
    return hold.candidate if hold else ""
