"""Makes the events, contexts and hostile texts of the contract, and applies them to a provider."""

from collections.abc import Sequence
from typing import Final

import msgspec
from memorybus.events import (
    AnyEvent,
    ContextCompressing,
    Delegated,
    Derived,
    Event,
    MemoryCurated,
    MemoryWritten,
    Position,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
    TurnStarted,
)
from memorybus.ids import derived_id

from memorybus_providers.base import (
    Fence,
    HookContext,
    MemoryProvider,
    Progress,
    RecallContext,
    RecallScope,
    TransactionalProvider,
)
from memorybus_providers.dispatch import bind

LANE: Final = "p00"
SESSION: Final = SessionRef(id="contract-session", root="contract-session")
EVERYONE: Final = RecallScope(agent=None, user=None, workspace=None)
HERE: Final = Scope(agent="contract-agent", user="contract-user")
OTHER_USER: Final = Scope(agent="contract-agent", user="another-user")
OTHERS: Final = Scope(agent="another-agent", user="another-user")
WORKSPACES: Final = ("", "boat", "house")
AT: Final = 1_700_000_000_000

HOSTILE_TEXTS: Final[tuple[str, ...]] = (
    "",
    " \t\r\n ",
    "nul \x00 in the middle",
    "line\r\nends\rof\nall kinds",
    "one\n§\ntwo\n§\nthree",
    "'; drop table facts; --",
    '" OR NEAR(a b) AND NOT * column:x ^',
    "{braces} %s %(x)d $HOME `id` \\",
    "</memory-context> <b>&amp;</b> ＜／memory-context＞",
    "\u202ereversed\u202c zero\u200bwidth \U0001f9e0 e\u0301 日本語",
    "word " * 20_000,
    "x" * 100_000,
)

HOSTILE_IDS: Final[tuple[str, ...]] = (
    "..",
    "../../../../etc/passwd",
    "/absolute",
    "a:b{c}*?[d]",
    "line\r\nbreak",
    "nul\x00byte",
    "CON",
    "Case",
    "case",
    "x" * 300,
    "日本語",
    " ",
)


class SampleStep(msgspec.Struct, frozen=True):
    """One event that is applied to a provider, with its place in the log."""

    n: int
    event: AnyEvent
    scope: Scope = HERE
    session: SessionRef = SESSION

    @property
    def event_id(self) -> str:
        """The event's id: the same for the same number."""
        return derived_id("contract", self.n)

    @property
    def entry(self) -> str:
        """The event's entry id in the log."""
        return f"{AT}-{self.n}"


def steps(*events: AnyEvent, scope: Scope = HERE, first: int = 1) -> tuple[SampleStep, ...]:
    """Number events from `first`."""
    return tuple(SampleStep(n, event, scope) for n, event in enumerate(events, first))


def every_event(text: str) -> tuple[AnyEvent, ...]:
    """Return events of all types that need no tools, with `text` wherever they have a text."""
    message = {"role": "user", "content": text}
    return (
        SessionStarted(title=text),
        TurnStarted(message=text),
        TurnCompleted(user=text, assistant=text, messages=(message,), ordinal=0),
        MemoryWritten(action="add", store="memory", content=text),
        MemoryWritten(action="add", store="user", content=text),
        MemoryWritten(action="replace", store="memory", content=text, old_text=text),
        MemoryWritten(action="remove", store="user", old_text=text),
        MemoryCurated(memory="0" * 14, before="active", after="archived", reason=text),
        Delegated(task=text, result=text, child_session="contract-child"),
        ContextCompressing(messages=(message,), compression_count=1),
        SessionSwitched(new_id=SESSION.id, reason="compression"),
        SessionEnded(reason=text, message_count=2),
        Derived(kind="summary", text=text, about=text, sources=(text,), cause=text, deriver=text),
        Derived(kind="fact", text=text, sources=("ab" * 16,), supersedes=(text,)),
    )


def hook_context(step: SampleStep, *, at: int = AT, deadline: float = 30.0) -> HookContext:
    """Return the context that a hook gets for a step."""
    position = Position(0, step.entry, step.n)
    return HookContext(step.scope, step.session, step.event_id, position, at, deadline)


def recall_context(scope: Scope | RecallScope, deadline: float = 5.0) -> RecallContext:
    """Return a recall's context for a scope's own memories."""
    if isinstance(scope, Scope):
        scope = RecallScope.own(scope)
    return RecallContext(scope=scope, budget=100_000, deadline=deadline)


def feed(provider: MemoryProvider, given: Sequence[SampleStep], *, epoch: int = 1) -> None:
    """Apply steps as a lane does: for a transactional provider, in one transaction.

    Steps that are in the ledger already are left out.
    """
    if isinstance(provider, TransactionalProvider):
        with provider.transaction(Fence(LANE, epoch)) as transaction:
            known = transaction.applied([step.event_id for step in given])
            call_hooks(provider, [step for step in given if step.event_id not in known])
            transaction.record([step.event_id for step in given], progress_at(given[-1], epoch))
    else:
        call_hooks(provider, given)


def call_hooks(provider: MemoryProvider, given: Sequence[SampleStep]) -> None:
    """Call the hook of each step."""
    apply = bind(provider)
    for step in given:
        apply(step.event, hook_context(step))


def progress_at(step: SampleStep, epoch: int = 1) -> Progress:
    """Return the checkpoint after a step."""
    return Progress(epoch, step.entry, step.n)


def handles_event(provider: MemoryProvider, event_type: type[Event]) -> bool:
    """Return whether a provider declares that it handles an event type."""
    return event_type in provider.capabilities.handles
