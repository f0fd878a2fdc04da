"""``memorybus memories``: of whom something is kept, and what."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from memorybus.surfaces.cli.options import DEFAULT, MEMORIES, Common, not_negative, positive
from memorybus.surfaces.cli.scope_options import NOBODY_NAMED, ScopeOptions, scope_of

if TYPE_CHECKING:
    from memorybus.surfaces.views.output import Output

Holding = Annotated[str, Parameter(help="Only what holds this text, in any case.")]
Limit = Annotated[int, Parameter(help="So many at most.", validator=positive)]


def register(app: App) -> None:
    """Add this group's commands."""
    kept = App(name="memories", help="What providers keep, of whom.", group=MEMORIES)
    kept.command(run_people, name="people")
    kept.command(run_list, name="list")
    app.command(kept)


def run_people(
    *,
    holding: Annotated[str, Parameter(help="Only names that hold this text.")] = "",
    limit: Limit = 50,
    common: Common = DEFAULT,
) -> int:
    """List of whom providers keep something, by agent, person and workspace.

    The providers are asked; one that cannot tell is named.

    For example:

    - `memorybus memories people`
    - `memorybus memories people --holding ana --json`
    """
    from memorybus.operations.memories import browsing
    from memorybus.surfaces.views.kept import people_table

    output, settings = common.output(), common.settings()
    found = browsing.people(settings, holding=holding, most=limit)
    for name, why in found.silent.items():
        output.note(f"{name}: {why}", "yellow")
    if output.json:
        output.result(found)
        return 0
    told = list(dict.fromkeys(name for one in found.people for name in one.memories))
    if found.people:
        output.show(people_table(found.people, told))
    _more(output, more=found.more, empty=not found.people)
    return 0


def run_list(
    *,
    whose: ScopeOptions = NOBODY_NAMED,
    provider: Annotated[
        str | None, Parameter(help="What this provider keeps; the first that can say if none.")
    ] = None,
    holding: Holding = "",
    skip: Annotated[int, Parameter(help="Without the first so many.", validator=not_negative)] = 0,
    limit: Limit = 50,
    common: Common = DEFAULT,
) -> int:
    """List what a provider keeps of a person: of those that the settings name, or the options.

    Each memory names the event that brought it, which `memorybus events get ID` shows.

    For example:

    - `memorybus memories list --user ana`
    - `memorybus memories list --user ana --provider builtin --holding berlin`
    """
    from memorybus.operations.memories import browsing
    from memorybus.recall.model import Want
    from memorybus.surfaces.views.kept import kept_table

    output, settings = common.output(), common.settings()
    asked = whose.of(scope_of(settings))
    name = provider or browsing.first_keeper(settings)
    want = Want(query="", agent=asked.agent, user=asked.user, workspace=asked.workspace)
    found = browsing.memories(settings, name, want, skip=skip, holding=holding, most=limit)
    if output.json:
        output.result(found)
        return 0
    if found.memories:
        output.show(kept_table(found.memories))
    else:
        output.note(f"{name} keeps nothing such for {asked}")
    _more(output, more=found.more, empty=False)
    return 0


def _more(output: "Output", *, more: bool, empty: bool) -> None:
    if empty:
        output.note("nothing is kept of anybody, as far as can be told")
    if more:
        output.note("there are more; narrow with --holding, or raise --limit")
