"""``memorybus memories``: list what providers keep about whom; correct or delete one memory."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from memorybus_console.cli.answers import ReasonOption, YesOption, act, shown
from memorybus_console.cli.events.events import check_event_id
from memorybus_console.cli.options import (
    DEFAULT,
    NO_SCOPE_OPTIONS,
    Common,
    ScopeOptions,
    not_negative,
    positive,
)
from memorybus_console.operations.settings import scope_of

if TYPE_CHECKING:
    from memorybus_console.actions.memories import PlannedAmendment
    from memorybus_console.operations.memories.amending import AmendmentResult
    from memorybus_console.operations.memories.browsing import Memories, People

MemoryEventOption = Annotated[
    str,
    Parameter(
        help="The event that the memory came from, as `memories list` shows it.",
        validator=check_event_id,
    ),
]
KeptByOption = Annotated[
    str, Parameter(help="As this provider keeps it; by default the first that can list memories.")
]
ContainedTextOption = Annotated[
    str, Parameter(help="If several memories came from the event: the one that contains this text.")
]
ApplyWaitOption = Annotated[
    float, Parameter(help="Seconds to wait until providers have applied it.", validator=positive)
]
ContainingOption = Annotated[
    str, Parameter(help="Only memories that contain this text, in upper or lower case.")
]
LimitOption = Annotated[int, Parameter(help="At most this many.", validator=positive)]


@shown
def run_people(
    *,
    containing: Annotated[str, Parameter(help="Only names that contain this text.")] = "",
    limit: LimitOption = 50,
    common: Common = DEFAULT,
) -> "People":
    """List the people about whom providers keep memories, by agent, person and workspace.

    Each provider is asked; those that cannot list people are named.

    For example:

    - `memorybus memories people`
    - `memorybus memories people --containing ana --json`
    """
    from memorybus_console.operations.memories import browsing

    return browsing.list_people(common.settings(), containing=containing, most=limit)


@shown
def run_list(
    *,
    scope_options: ScopeOptions = NO_SCOPE_OPTIONS,
    provider: Annotated[
        str | None,
        Parameter(help="What this provider keeps; by default the first that can list memories."),
    ] = None,
    containing: ContainingOption = "",
    archived: Annotated[
        bool, Parameter(negative="", help="Only those that the curator archived.")
    ] = False,
    skip: Annotated[int, Parameter(help="Skip this many.", validator=not_negative)] = 0,
    limit: LimitOption = 50,
    common: Common = DEFAULT,
) -> "Memories":
    """List what a provider keeps about a person: the one that the options or the settings name.

    Each memory names the event that it came from, which `memorybus events get ID` shows.

    For example:

    - `memorybus memories list --user ana`
    - `memorybus memories list --user ana --provider builtin --containing berlin`
    """
    from memorybus.recall.model import RecallRequest

    from memorybus_console.operations.memories import browsing

    settings = common.settings()
    asked = scope_options.filter_for(scope_of(settings))
    name = provider or browsing.first_browsable(settings, archived=archived)
    owner = RecallRequest(query="", agent=asked.agent, user=asked.user, workspace=asked.workspace)
    page = browsing.list_memories(
        *(settings, name, owner),
        skip=skip,
        containing=containing,
        most=limit,
        archived=archived,
    )
    if not page.memories:
        common.output().note(f"{name} has no such memory of {asked}")
    return page


@shown
def run_correct(
    event: MemoryEventOption,
    content: Annotated[str, Parameter(help="The right text.")],
    /,
    *,
    provider: KeptByOption = "",
    text: ContainedTextOption = "",
    reason: ReasonOption = "",
    yes: YesOption = False,
    wait: ApplyWaitOption = 30.0,
    common: Common = DEFAULT,
) -> "PlannedAmendment | AmendmentResult | None":
    """Correct a memory that `memories list` shows with its event.

    The correction is published as events, which a rebuild repeats: an entry of the agent's stores
    is replaced; what was said in a conversation is superseded by the right text. Exit code 1 if a
    provider has not applied them yet.

    For example:

    - `memorybus memories correct 0198f2c45b1e7a3c9d0e1f2a3b4c5d6e "Ana lives in Paris."`
    - `memorybus memories correct EVENT "Ana lives in Paris." --text Berlin --reason "moved" --yes`
    """
    from memorybus_console.actions.memories import CorrectMemory
    from memorybus_console.operations.memories.browsing import first_browsable

    provider = provider or first_browsable(common.settings())
    action = CorrectMemory(
        event=event.lower(), provider=provider, text=text, content=content, reason=reason
    )
    return act(action, common, yes=yes, wait=wait)


@shown
def run_delete(
    event: MemoryEventOption,
    /,
    *,
    provider: KeptByOption = "",
    text: ContainedTextOption = "",
    reason: ReasonOption = "",
    yes: YesOption = False,
    wait: ApplyWaitOption = 30.0,
    common: Common = DEFAULT,
) -> "PlannedAmendment | AmendmentResult | None":
    """Delete a memory and all others from the same event.

    The deletion is published as an event, so that a rebuild does not bring the memory back. Log and
    archive still hold what was said; `memorybus forget` erases it there.

    For example:

    - `memorybus memories delete 0198f2c45b1e7a3c9d0e1f2a3b4c5d6e`
    - `memorybus memories delete EVENT --reason "she asked" --yes --json`
    """
    from memorybus_console.actions.memories import DeleteMemory
    from memorybus_console.operations.memories.browsing import first_browsable

    provider = provider or first_browsable(common.settings())
    action = DeleteMemory(event=event.lower(), provider=provider, text=text, reason=reason)
    return act(action, common, yes=yes, wait=wait)
