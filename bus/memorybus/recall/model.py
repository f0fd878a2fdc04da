"""The values of recall: a session's requests, and the warm results that it reads."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from memorybus.config.settings import Settings
from memorybus.events import Scope, SessionRef
from memorybus.msgspec_types import prepared
from memorybus.redis.keys import partition_of, recall_slot, session_key, store_key

GENERATION = b"g:"
"""The prefix of the field in a warm hash that says which request a provider's result answers."""


class RecallRequest(msgspec.Struct, frozen=True):
    """A request for a recall (stored as JSON, with every field: no reader has to guess a scope)."""

    query: str  # the question or prompt
    # the agent whose memories are wanted; None for all agents, which only an operator may ask for
    agent: str | None = "default"
    user: str | None = "default"  # the person whose memories are wanted; None for all persons
    # the workspace whose memories are wanted; "" for those of no workspace, None for all
    workspace: str | None = ""
    session: SessionRef | None = None  # the session that asks, or None
    budget: int = 2_000  # characters of lines a provider may return
    # also keep the single items, not only rendered lines (the operator's recall)
    detail: bool = False
    # dense numbers by partition that should be applied first (read your writes)
    positions: dict[int, int] = {}
    # Whether events of the asking process were not in the log yet. The answer may lack what they
    # bring, so it is not kept as the answer to the same words.
    early: bool = False
    # ask not for an answer to the query but for what the provider adds to system prompts
    prompt: bool = False
    as_of: int | None = None  # ask for what was known at this time, milliseconds; None for now
    trace: str = ""  # W3C traceparent of the asker's span, or empty

    @property
    def owner(self) -> Scope | None:
        if self.agent is None or self.user is None or self.workspace is None:
            return None
        return Scope(agent=self.agent, user=self.user, workspace=self.workspace)


class RecalledItem(msgspec.Struct, frozen=True):
    """One remembered thing: escaped, otherwise verbatim. ``at`` is milliseconds, or None."""

    provider: str
    text: str
    session: str
    at: int | None
    source: str = ""  # where the provider has it from; empty if the provider does not say
    truncated: bool = False  # whether the provider says that it left something out
    speaker: str = ""  # who said it; empty if unknown
    event: str = ""  # id of the event that brought it; empty if its provider does not know
    # when a newer statement replaced it, milliseconds; None if it still holds
    until: int | None = None
    before: str = ""  # the statement that it replaced; empty if there is none
    # the value by which the provider sorted its items; comparable within one answer only
    score: float = 0.0
    matched: tuple[str, ...] = ()  # its words that the question contains
    # the similarity of its meaning to that of the question, -1 to 1; None if not compared
    meaning: float | None = None
    parts: dict[str, float] = {}  # the parts of the score, by name


class WarmResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """A provider's answer as it is stored (msgpack)."""

    lines: tuple[str, ...] = ()  # the rendered lines
    items: tuple[RecalledItem, ...] = ()  # the single items, if they were asked for
    # digest of the query that it answers; "" if the provider had not applied the events before the
    # query yet, so that the same query is asked again
    asked: str = ""
    # the owner's mark when it was recalled; it is only read while the owner still has this mark
    # (`memorybus.recall.retractions`)
    mark: str = ""
    # for each line the id of the event that brought its memory, or ""; empty if the provider knows
    # none
    events: tuple[str, ...] = ()
    # for each line the value by which the provider sorted it; empty without `events`
    scores: tuple[float, ...] = ()


_result_decoder = msgspec.msgpack.Decoder(prepared(WarmResult))


class WarmAsk(msgspec.Struct, frozen=True):
    """Ask the workers for a recall."""

    slot: str  # the session's slot
    sequence: int  # the spool's sequence that must be in the log before the request is sent
    want: RecallRequest  # the request; its positions are filled in when it is sent
    partitions: tuple[int, ...] = ()  # the partitions to which the session writes


class CarryAsk(msgspec.Struct, frozen=True):
    """Copy warm results to the slot of the session that continues the conversation."""

    slot: str
    sequence: int
    origin: str


Ask = WarmAsk | CarryAsk
"""A request for a recall; of each kind a session's newest request counts."""


def build_request(
    scope: Scope, session: SessionRef, query: str, budget: int, trace: str = ""
) -> RecallRequest:
    return RecallRequest(
        query=query,
        agent=scope.agent,
        user=scope.user,
        workspace=scope.workspace,
        session=session,
        budget=budget,
        trace=trace,
    )


def build_prompt_request(scope: Scope, session: SessionRef, budget: int) -> RecallRequest:
    return msgspec.structs.replace(build_request(scope, session, "", budget), prompt=True)


def lifetime_ms(settings: Settings, want: RecallRequest) -> int:
    return round((settings.prompt_ttl if want.prompt else settings.recall_ttl) * 1000)


def written_partitions(scope: Scope, session: SessionRef, partitions: int) -> tuple[int, ...]:
    """Return the partitions to which a session's events and writes to its stores go."""
    keys = (session_key(scope, session.root), store_key("memory", scope), store_key("user", scope))
    return tuple({partition_of(key, partitions) for key in keys})


def slot_of(scope: Scope, session: SessionRef) -> str:
    return recall_slot(scope, f"{session.epoch}:{session.id}")


def prompt_slot(scope: Scope) -> str:
    """Return an owner's slot for what providers add to system prompts; all sessions share it."""
    return recall_slot(scope, "")


def warm_results(fields: Iterable[tuple[bytes, bytes]]) -> dict[str, WarmResult]:
    """Decode the results in the fields of a warm hash, which are pairs of name and value."""
    return {
        name.decode(): _result_decoder.decode(body)
        for name, body in fields
        if not name.startswith(GENERATION)
    }


def provider_of(field: bytes) -> str:
    """Return the provider to which a field of a warm hash belongs: its result or generation."""
    return field.removeprefix(GENERATION).decode(errors="replace")


def items_of(results: Mapping[str, WarmResult], names: Sequence[str]) -> tuple[RecalledItem, ...]:
    return tuple(item for name in names if name in results for item in results[name].items)
