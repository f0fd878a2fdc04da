"""``memorybus memories``: list what providers keep about whom; correct or delete one memory."""

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from cyclopts import App, Parameter
from memorybus.config.settings import Settings

from memorybus_console.cli.events.events import check_event_id
from memorybus_console.cli.options import (
    DEFAULT,
    MEMORIES,
    Common,
    ExecuteOption,
    not_negative,
    operator,
    positive,
)
from memorybus_console.cli.scope_options import NO_SCOPE_OPTIONS, ScopeOptions, scope_of

if TYPE_CHECKING:
    from memorybus_console.views.output import Output

MemoryEventOption = Annotated[
    str,
    Parameter(
        help="The event that the memory came from, as `memories list` shows it.",
        validator=check_event_id,
    ),
]
KeptByOption = Annotated[
    str | None,
    Parameter(help="As this provider keeps it; by default the first that can list memories."),
]
ContainedTextOption = Annotated[
    str, Parameter(help="If several memories came from the event: the one that contains this text.")
]
MemoryReasonOption = Annotated[str, Parameter(help="Why, for the record.")]
ApplyWaitOption = Annotated[
    float, Parameter(help="Seconds to wait until providers have applied it.", validator=positive)
]
HoldingOption = Annotated[
    str, Parameter(help="Only memories that contain this text, in upper or lower case.")
]
LimitOption = Annotated[int, Parameter(help="At most this many.", validator=positive)]


def register(app: App) -> None:
    """Add this group's commands."""
    kept = App(name="memories", help="What providers keep about whom.", group=MEMORIES)
    kept.command(run_people, name="people")
    kept.command(run_list, name="list")
    kept.command(run_correct, name="correct")
    kept.command(run_delete, name="delete")
    app.command(kept)


def run_people(
    *,
    holding: Annotated[str, Parameter(help="Only names that contain this text.")] = "",
    limit: LimitOption = 50,
    common: Common = DEFAULT,
) -> int:
    """List the people about whom providers keep memories, by agent, person and workspace.

    Each provider is asked; those that cannot list people are named.

    For example:

    - `memorybus memories people`
    - `memorybus memories people --holding ana --json`
    """
    from memorybus_console.operations.memories import browsing
    from memorybus_console.views.kept import people_table

    output, settings = common.output(), common.settings()
    found = browsing.list_people(settings, holding=holding, most=limit)
    for name, why in found.silent.items():
        output.note(f"{name}: {why}", "yellow")
    if output.json:
        output.result(found)
        return 0
    told = list(dict.fromkeys(name for one in found.people for name in one.memories))
    if found.people:
        output.show(people_table(found.people, told))
    _note_rest(output, more=found.more, empty=not found.people)
    return 0


def run_list(
    *,
    scope_options: ScopeOptions = NO_SCOPE_OPTIONS,
    provider: Annotated[
        str | None,
        Parameter(help="What this provider keeps; by default the first that can list memories."),
    ] = None,
    holding: HoldingOption = "",
    skip: Annotated[int, Parameter(help="Skip this many.", validator=not_negative)] = 0,
    limit: LimitOption = 50,
    common: Common = DEFAULT,
) -> int:
    """List what a provider keeps about a person: the one that the options or the settings name.

    Each memory names the event that it came from, which `memorybus events get ID` shows.

    For example:

    - `memorybus memories list --user ana`
    - `memorybus memories list --user ana --provider builtin --holding berlin`
    """
    from memorybus.recall.model import RecallRequest

    from memorybus_console.operations.memories import browsing
    from memorybus_console.views.kept import kept_table

    output, settings = common.output(), common.settings()
    asked = scope_options.filter_for(scope_of(settings))
    name = provider or browsing.first_browsable(settings)
    want = RecallRequest(query="", agent=asked.agent, user=asked.user, workspace=asked.workspace)
    found = browsing.list_memories(settings, name, want, skip=skip, holding=holding, most=limit)
    if output.json:
        output.result(found)
        return 0
    if found.memories:
        output.show(kept_table(found.memories))
    else:
        output.note(f"{name} keeps nothing such for {asked}")
    _note_rest(output, more=found.more, empty=False)
    return 0


def run_correct(
    event: MemoryEventOption,
    content: Annotated[str, Parameter(help="The right text.")],
    /,
    *,
    provider: KeptByOption = None,
    text: ContainedTextOption = "",
    reason: MemoryReasonOption = "",
    yes: ExecuteOption = False,
    wait: ApplyWaitOption = 30.0,
    common: Common = DEFAULT,
) -> int:
    """Correct a memory that `memories list` shows with its event; without --yes only show the plan.

    The correction is published as events, which a rebuild repeats: an entry of the agent's stores
    is replaced; what was said in a conversation is superseded by the right text. Exit code 1 if a
    provider has not applied them yet.

    For example:

    - `memorybus memories correct 0198f2c45b1e7a3c9d0e1f2a3b4c5d6e "Ana lives in Paris."`
    - `memorybus memories correct EVENT "Ana lives in Paris." --text Berlin --reason "moved" --yes`
    """
    asked = _AmendmentRequest("correct", event, content, provider, text, reason, wait)
    return _amend(common.output(), common.settings(), asked, yes=yes)


def run_delete(
    event: MemoryEventOption,
    /,
    *,
    provider: KeptByOption = None,
    text: ContainedTextOption = "",
    reason: MemoryReasonOption = "",
    yes: ExecuteOption = False,
    wait: ApplyWaitOption = 30.0,
    common: Common = DEFAULT,
) -> int:
    """Delete a memory and all others from the same event; without --yes only show the plan.

    The deletion is published as an event, so that a rebuild does not bring the memory back. Log and
    archive still hold what was said; `memorybus forget` erases it there.

    For example:

    - `memorybus memories delete 0198f2c45b1e7a3c9d0e1f2a3b4c5d6e`
    - `memorybus memories delete EVENT --reason "she asked" --yes --json`
    """
    asked = _AmendmentRequest("delete", event, "", provider, text, reason, wait)
    return _amend(common.output(), common.settings(), asked, yes=yes)


class _AmendmentRequest(msgspec.Struct, frozen=True):
    """What an operator wants done to which memory."""

    action: Literal["correct", "delete"]
    event: str
    content: str
    provider: str | None
    text: str
    reason: str
    wait: float


def _amend(output: "Output", settings: Settings, asked: _AmendmentRequest, *, yes: bool) -> int:
    """Show the plan, or carry it out with `yes`; return the exit code."""
    from memorybus.events import OperatorActed

    from memorybus_console.operations import audit
    from memorybus_console.operations.memories import amending, browsing
    from memorybus_console.views.kept import plan_json, plan_text

    name = asked.provider or browsing.first_browsable(settings)
    memory = amending.find_memory_of_event(
        *(settings, name, asked.action, asked.event.lower(), asked.text)
    )
    plan = amending.plan_amendment(settings, asked.action, memory, asked.content)
    if not yes:
        if output.json:
            output.result({"executed": False, **plan_json(plan)})
        else:
            output.show(plan_text(plan))
            output.note("nothing was done; add --yes to do it")
        return 0
    about = {"event": plan.memory.event, "provider": name}
    act = f"{asked.action} memory"
    audit.record_act(
        settings, OperatorActed(act=act, operator=operator(), reason=asked.reason, about=about)
    )
    done = amending.carry_out(settings, plan, wait=asked.wait)
    if output.json:
        output.result({"executed": True, **msgspec.to_builtins(done)})
    else:
        output.show(f"published: {', '.join(done.events)}")
    for instance, left in done.behind.items():
        output.note(f"{instance} has not applied it yet: it lacks {left} events", "yellow")
    return 1 if done.behind or not done.logged else 0


def _note_rest(output: "Output", *, more: bool, empty: bool) -> None:
    if empty:
        output.note("no provider that can list people keeps anything")
    if more:
        output.note("there are more: narrow the list with --holding, or raise --limit")
