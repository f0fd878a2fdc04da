"""``memorybus dlq``: show the events that a provider refused; retry, edit or discard them."""

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import Parameter
from memorybus.errors import InvalidEvent

from memorybus_console.cli.answers import WAIT_SECONDS, ReasonOption, YesOption, act, shown
from memorybus_console.cli.options import DEFAULT, Common, positive
from memorybus_console.result import Presentation, Remark
from memorybus_console.views.presenter import parts_of
from memorybus_console.views.render import line

if TYPE_CHECKING:
    from memorybus.dead_letters.queue import LocatedLetter

    from memorybus_console.actions.dead_letters import LettersActed, PlannedLetters
    from memorybus_console.views.dead_letters import Letter, LetterError, LetterKey, LetterProvider

MAX_SHOWN = 50


_NEXT_STEPS = "reason: memorybus dlq show EVENT; edit and discard show their plan first"


def check_text(_: Any, text: str | None) -> None:
    if text is not None and not text.strip():
        raise ValueError("It must not be empty.")


LetterProviderOption = Annotated[
    str | None, Parameter(help="Only dead letters of this provider instance.")
]
LetterOption = Annotated[str | None, Parameter(help="An event's id, or the beginning of one.")]
LetterReasonOption = Annotated[
    str, Parameter(help="Reason, written to the log.", validator=check_text)
]
LaneWaitOption = Annotated[
    float, Parameter(help="Seconds to wait for the lanes' owners.", validator=positive)
]


@Parameter(name="*")
@dataclass(frozen=True)
class LetterOptions:
    """The ways to select dead letters, beside an event's id."""

    key: Annotated[
        str | None, Parameter(help="All that wait with this order key, as `dlq ls` prints it.")
    ] = None
    error: Annotated[
        str | None, Parameter(help="All of this error group, as `dlq ls` prints it.")
    ] = None
    everything: Annotated[bool, Parameter(name="--all", negative="", help="All dead letters.")] = (
        False
    )
    provider: LetterProviderOption = None


NO_LETTER_OPTIONS = LetterOptions()


@shown
def run_dlq_ls(
    *,
    provider: LetterProviderOption = None,
    group: Annotated[
        Literal["error", "key", "provider"], Parameter(help="One line for each of these.")
    ] = "key",
    limit: Annotated[
        int, Parameter(help="At most this many lines.", validator=positive)
    ] = MAX_SHOWN,
    common: Common = DEFAULT,
) -> "Presentation[list[LetterKey] | list[LetterError] | list[LetterProvider]]":
    """List the events that providers refused for good, and how many wait behind them.

    For example:

    - `memorybus dlq ls --group error`
    - `memorybus dlq ls --provider mem0 --json`
    """
    from memorybus_console.operations.dead_letters import letters_of, open_dead_letters
    from memorybus_console.views import dead_letters

    rows_by: dict[str, Callable[[Sequence[LocatedLetter]], list[Any]]] = {
        "key": dead_letters.letters_by_key,
        "error": dead_letters.letters_by_error,
        "provider": dead_letters.letters_by_provider,
    }
    with closing(open_dead_letters(common.settings())) as desk:
        rows = rows_by[group](letters_of(desk, provider))
    more = f"{len(rows) - limit} more lines are not shown: --limit {len(rows)}"
    remarks = [Remark(_NEXT_STEPS)] * bool(rows) + [Remark(more)] * (len(rows) > limit)
    none = line(f"no dead letters of {provider}" if provider else "no dead letters")
    return Presentation(rows[:limit], parts_of(rows[:limit]) if rows else [none], notes=remarks)


@shown
def run_dlq_show(
    event: Annotated[str, Parameter(help="Its id, or the beginning of it.")],
    /,
    *,
    provider: LetterProviderOption = None,
    common: Common = DEFAULT,
) -> "Presentation[Letter]":
    """Show one dead letter: why it was refused, the traceback, and the event itself.

    For example:

    - `memorybus dlq show 0198f2c4`
    - `memorybus dlq show 0198f2c4 --json | jq .published.event > new.json`
    """
    from memorybus_console.operations.dead_letters import (
        LetterSelection,
        letters_of,
        open_dead_letters,
        select_letters,
    )
    from memorybus_console.views import dead_letters

    with closing(open_dead_letters(common.settings())) as desk:
        letters = letters_of(desk, provider)
        dead = select_letters(letters, LetterSelection(event=event, provider=provider))[0]
        letter = dead_letters.letter_of(dead, desk.event(dead))
    of_key = [each for each in letters if each.lane_and_key == dead.lane_and_key]
    first = of_key[0].stored.letter.event_id
    return Presentation(letter, dead_letters.letter_parts(letter, len(of_key), first))


@shown
def run_dlq_retry(
    event: LetterOption = None,
    /,
    *,
    options: LetterOptions = NO_LETTER_OPTIONS,
    reason: ReasonOption = "",
    wait: LaneWaitOption = WAIT_SECONDS,
    common: Common = DEFAULT,
) -> "PlannedLetters | LettersActed | None":
    """Apply dead letters again, one key at a time and in order, until one is refused again.

    An event's id selects all that wait with its key. The workers that own the lanes carry it out.
    Exit code 1 if an event is refused again, or if not all is done in time.

    For example:

    - `memorybus dlq retry --error 3f9a21c0`
    - `memorybus dlq retry --key session:aa6edef1a7211261:chat-17`
    """
    from memorybus_console.actions.dead_letters import RetryLetters

    action = RetryLetters(event=event, **asdict(options), reason=reason)
    return act(action, common, wait=wait)


@shown
def run_dlq_discard(
    event: LetterOption = None,
    /,
    *,
    reason: LetterReasonOption,
    options: LetterOptions = NO_LETTER_OPTIONS,
    yes: YesOption = False,
    wait: LaneWaitOption = WAIT_SECONDS,
    common: Common = DEFAULT,
) -> "PlannedLetters | LettersActed | None":
    """Give up events for a provider; the events that wait behind them are applied.

    The events stay in the log, which records who discarded them and why.

    For example:

    - `memorybus dlq discard 0198f2c4 --reason "test data"`
    - `memorybus dlq discard --error 3f9a21c0 --reason "ticket 812" --yes`
    """
    from memorybus_console.actions.dead_letters import DiscardLetters

    action = DiscardLetters(event=event, **asdict(options), reason=reason)
    return act(action, common, yes=yes, wait=wait)


@shown
def run_dlq_edit(
    event: Annotated[str, Parameter(help="Its id, or the beginning of it.")],
    /,
    *,
    file: Annotated[Path, Parameter(help="JSON fields of the event to apply instead; - is stdin.")],
    reason: LetterReasonOption,
    provider: LetterProviderOption = None,
    yes: YesOption = False,
    wait: LaneWaitOption = WAIT_SECONDS,
    common: Common = DEFAULT,
) -> "PlannedLetters | LettersActed | None":
    """Replace an event for the provider that refused it, and retry its key.

    The log keeps the event as it was published, and records the edit.

    For example:

    - `memorybus dlq edit 0198f2c4 --file new.json --reason "name misspelt" --yes`
    """
    from memorybus_console.actions.dead_letters import EditLetter

    action = EditLetter(event=event, provider=provider, fields=_fields(file), reason=reason)
    return act(action, common, yes=yes, wait=wait)


def _fields(file: Path) -> dict[str, Any]:
    """Read the fields of an edited event."""
    raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidEvent(f"{file}: not a JSON object: {error}") from error
