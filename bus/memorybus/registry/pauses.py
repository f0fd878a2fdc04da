"""Why an instance's lanes stand still: on somebody's word, or for a moment of a command. Pure."""

from typing import Literal

import msgspec

HoldState = Literal["", "kept", "dropped", "removed"]


class Hold(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an instance's lanes stand still.

    Attributes:
        reason: why, for people.
        by: who.
        at: since when (wall time, milliseconds).
        candidate: the copy for which a command holds it for a while; "" for every other hold.
        under: the other hold over which a command's stands: it holds on afterwards.
        state: why it stands still for good: it is ``kept`` for a rollback, its generation was
            ``dropped``, or its provider was ``removed``; "" if somebody paused it.
    """

    reason: str = ""
    by: str = ""
    at: int = 0
    candidate: str = ""
    under: "Hold | None" = None
    state: HoldState = ""


def paused(hold: Hold | None) -> Hold | None:
    """Return what holds an instance when no command does so any more."""
    return hold.under if hold is not None and hold.candidate else hold


def held_over(known: Hold | None, why: Hold) -> Hold:
    """Return a command's hold of an instance that may be held otherwise, too."""
    return msgspec.structs.replace(why, under=paused(known))


def held_beside(known: Hold | None, why: Hold) -> Hold:
    """Return somebody's hold of an instance, beside a command's; who came first stays."""
    if paused(known) is not None or known is None:
        return known or why
    return msgspec.structs.replace(known, under=why)


def commands_alone(known: Hold | None) -> Hold | None:
    """Return what is left of a hold when nobody but a command holds an instance any more."""
    if known is None or not known.candidate:
        return None
    return msgspec.structs.replace(known, under=None)


def held_for(what: str, provider: str, candidate: str, by: str, at: int) -> Hold:
    """Return how a command holds instances for a copy: who reads it knows what was begun."""
    return Hold(f"{what} of {provider}: {candidate} is prepared", by, at, candidate)


def prepared(hold: Hold | None) -> str:
    """Return the copy for which a command holds an instance; "" if no such command does."""
    return hold.candidate if hold else ""
