"""``memorybus verify`` and ``memorybus diff``: compare a state with history, or with another."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import App, Parameter
from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError
from rich.text import Text

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import (
    DEFAULT,
    OPERATE,
    Common,
    InstanceOption,
    operator,
    positive,
    to_absolute_time,
)
from memorybus_console.cli.progress import checked_stores, show_bar
from memorybus_console.cli.scope_options import NO_SCOPE_OPTIONS, ScopeOptions, scope_of
from memorybus_console.result import Prints
from memorybus_console.views.output import Output
from memorybus_console.views.render import grid
from memorybus_console.views.safe import visible

if TYPE_CHECKING:
    from memorybus_console.operations.rebuild.diff import RecallDifference
    from memorybus_console.operations.rebuild.verify import VerifyResult

_INTERRUPTED = "interrupted: the live state is unchanged; the copy for the comparison is dropped"

_DIFFERENCES = {
    "differs": "differs",
    "missing": "in the live one only",
    "strange": "in the copy only",
}


def register(app: App) -> None:
    """Add this group's commands."""
    app.command(run_verify, name="verify", group=OPERATE)
    app.command(run_diff, name="diff", group=OPERATE)


@shown
def run_verify(
    provider: InstanceOption,
    /,
    *,
    until: Annotated[
        str,
        Parameter(
            converter=to_absolute_time,
            help="Compare with the state of this moment (an ISO time, UTC if it names no zone, how "
            "long ago as in 2h, p07:1234, or an event's id); whatever was written since differs.",
        ),
    ] = "",
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(VerifyResult)]":
    """Check whether a provider's live state is what the history gives; exit code 1 if it is not.

    A copy is filled from the history and compared by digest. If a key differs, the live lanes pause
    for a moment, so that both are compared at the same position; recalls continue.

    For example:

    - `memorybus verify holographic`
    - `memorybus verify holographic --until 2h --json`
    """
    from memorybus_console.operations.rebuild.rebuild import open_rebuilder
    from memorybus_console.operations.rebuild.verify import VerifyRequest, verify_provider

    output, settings = common.output(), common.settings()
    wanted = VerifyRequest(provider=provider, until=until, by=operator())
    with (
        show_bar(output, "verify", "places of the history", _INTERRUPTED) as tell,
        open_rebuilder(settings, provider, "verification", wanted.by, tell) as work,
    ):
        found = verify_provider(work, wanted)
    _show(output, found)
    return 0 if found.ok else 1


def _show(output: Output, found: "VerifyResult") -> None:
    if output.json:
        output.result(found)
        return
    compared = found.compared
    equal = compared.keys - compared.differing
    output.show(visible(f"{found.live}: {equal} of {compared.keys} keys equal the history's"))
    for one in compared.named:
        output.show(visible(f"  {one.key}: {_DIFFERENCES[one.how]}"))
    if compared.differing > len(compared.named):
        output.note(f"{compared.differing - len(compared.named)} more")
    if found.parked:
        output.note(f"{found.parked} events are parked: memorybus dlq ls", "yellow")


@shown
def run_diff(
    first: Annotated[str, Parameter(help="An instance of a provider.")],
    second: Annotated[str, Parameter(help="Another instance, of this provider or another.")],
    /,
    *,
    query: Annotated[
        list[str] | None,
        Parameter(negative="", consume_multiple=False, help="A question; may be repeated."),
    ] = None,
    queries: Annotated[Path | None, Parameter(help="A file with a question on each line.")] = None,
    scope_options: ScopeOptions = NO_SCOPE_OPTIONS,
    budget: Annotated[
        int, Parameter(help="Characters that each may recall.", validator=positive)
    ] = 2_000,
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(list[RecallDifference])]":
    """Show what two providers, or generations or copies of one, would recall, side by side.

    For example:

    - `memorybus diff holographic holographic@1 --query "When does the inspector come?"`
    - `memorybus diff holographic holographic@1 --queries questions.txt --json`
    """
    from memorybus.jobs.inspect import InstanceInspector
    from memorybus.recall.model import RecallRequest

    from memorybus_console.operations.copies.generations import provider_of
    from memorybus_console.operations.rebuild.diff import compare_recalls

    output, settings = common.output(), common.settings()
    asked = _questions(query, queries)
    with checked_stores(settings) as stores:
        view = stores.instances.read_view()
        one, two = ((provider_of(n, view, settings.providers), n) for n in (first, second))
    scope = msgspec.structs.asdict(scope_options.filter_for(scope_of(settings)))
    wants = [RecallRequest(query=one, **scope, budget=budget, detail=True) for one in asked]
    found = compare_recalls(InstanceInspector(settings, SYSTEM), (one, two), wants)
    _show_recalls(output, found)
    return 0


def _show_recalls(output: Output, found: "list[RecallDifference]") -> None:
    if output.json:
        output.result(found)
        return
    for one in found:
        _show_side_by_side(output, one)


def _questions(query: list[str] | None, file: Path | None) -> list[str]:
    """Return the questions of the options and of the file.

    Raises:
        ConfigError: there is no question, or the file cannot be read.
    """
    asked = [one for one in [*(query or ()), *_read_lines(file)] if one.strip()]
    if not asked:
        raise ConfigError("ask something: --query TEXT, or --queries FILE")
    return asked


def _read_lines(file: Path | None) -> list[str]:
    try:
        return [] if file is None else file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from error


def _show_side_by_side(output: Output, one: "RecallDifference") -> None:
    output.show(visible(f"{one.query}{'' if one.same else '  (differs)'}"))
    sides = (one.first.instance, one.second.instance)
    table = grid(*sides, texts=sides)
    left, right = one.first.texts, one.second.texts
    for row in range(max(len(left), len(right))):
        cells = (side[row] if row < len(side) else "" for side in (left, right))
        table.add_row(*(Text(visible(cell)) for cell in cells))
    output.show(table)
