"""Why an instance's lanes are paused: an operator paused them, or a command does for a moment.

The functions are pure.
"""

from typing import Literal

import msgspec

PauseState = Literal["", "kept", "dropped", "removed"]


class InstancePause(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an instance's lanes are paused.

    Attributes:
        reason: the reason, for people.
        by: who paused them, as ``user@host``.
        at: since when (wall time, milliseconds).
        candidate: the copy for which a command pauses the instance; "" for any other pause.
        under: an operator's pause, which stays when the command's pause ends.
        state: why it is paused for good: it is ``kept`` for a rollback, its generation was
            ``dropped``, or its provider was ``removed``; "" if somebody paused it.
    """

    reason: str = ""
    by: str = ""
    at: int = 0
    candidate: str = ""
    under: "InstancePause | None" = None
    state: PauseState = ""


def lasting_pause(pause: InstancePause | None) -> InstancePause | None:
    """Return the pause that stays when no command pauses the instance any more."""
    return pause.under if pause is not None and pause.candidate else pause


def over_lasting(known: InstancePause | None, why: InstancePause) -> InstancePause:
    """Return a command's pause `why`, which keeps an operator's pause beneath it."""
    return msgspec.structs.replace(why, under=lasting_pause(known))


def beside_command(known: InstancePause | None, why: InstancePause) -> InstancePause:
    """Return an operator's pause `why`, added to a command's; an earlier operator's pause stays."""
    if lasting_pause(known) is not None or known is None:
        return known or why
    return msgspec.structs.replace(known, under=why)


def command_part(known: InstancePause | None) -> InstancePause | None:
    """Return the pause that stays when no operator pauses the instance any more."""
    if known is None or not known.candidate:
        return None
    return msgspec.structs.replace(known, under=None)


def command_pause(what: str, provider: str, candidate: str, by: str, at: int) -> InstancePause:
    """Return the pause by which a command prepares a copy; its reason tells people what began."""
    return InstancePause(f"{what} of {provider}: {candidate} is prepared", by, at, candidate)


def prepared_copy(pause: InstancePause | None) -> str:
    """Return the copy for which a command pauses an instance; "" if none does."""
    return pause.candidate if pause else ""
