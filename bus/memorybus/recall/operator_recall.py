"""A recall that waits for all answers: for `memorybus recall`, tools and tests, not for a turn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec

from memorybus.clock import Clock
from memorybus.concurrency.backoff import look_pause
from memorybus.config.settings import Settings
from memorybus.errors import MissingProvider, NoWorker
from memorybus.events import SessionRef
from memorybus.ids import new_id, text_digest
from memorybus.recall.model import RecalledItem, RecallRequest, WarmResult, items_of, warm_results
from memorybus.redis.keys import Keys
from memorybus.text.cleaning import clean_text
from memorybus.text.fence import build_block, without_repeats

if TYPE_CHECKING:
    from memorybus.registry.roster import Roster

_ERROR_PREFIX = b"e:"
_CANNOT_RECALL_THEN = "it keeps no times: it cannot recall as of one"


class RecallAnswer(msgspec.Struct, frozen=True):
    """The answers to a recall, and the providers that did not answer."""

    text: str  # the fenced block, or ""
    results: tuple[RecalledItem, ...]  # the single items, in the order of the block
    missing: dict[str, str]  # providers that did not answer, with the reason


def recall_now(
    settings: Settings,
    clock: Clock,
    question: str,
    *,
    agent: str | None,
    user: str | None,
    workspace: str | None,
    session: str | None,
    providers: Sequence[str] | None,
    budget: int,
    timeout: float,
    as_of: int | None = None,
    trace: str = "",
) -> RecallAnswer:
    """Ask every provider and wait for the answers; see `MemoryBus.recall`.

    The caller names agent, user and workspace; None means everyone's memories, which only an
    operator may ask for. `trace` is the traceparent of the asker's span.
    """
    want = RecallRequest(
        query=clean_text(question),
        agent=agent,
        user=user,
        workspace=workspace,
        session=SessionRef(session, session) if session else None,
        budget=budget,
        detail=True,
        as_of=as_of,
        trace=trace,
    )
    return _ask_and_wait(settings, clock, want, providers, timeout)


def _ask_and_wait(
    settings: Settings,
    clock: Clock,
    want: RecallRequest,
    providers: Sequence[str] | None,
    timeout: float,
) -> RecallAnswer:
    from memorybus.log.stream import EventLog
    from memorybus.recall.requester import RecallRequester
    from memorybus.redis.connect import TIMEOUT, connected
    from memorybus.registry.roster import Roster

    with (
        connected(settings) as redis,
        closing(
            RecallRequester(redis, settings, patience=TIMEOUT)  # a person waits, no event
        ) as requester,
    ):
        roster = Roster(redis, Keys(settings.namespace))
        names, unserved = _choose_providers(roster, providers, want.as_of)
        heads = EventLog(redis, settings).heads()
        positions = {head.partition: head.n for head in heads if head.n}
        slot = text_digest(new_id())
        refused = requester.request(slot, msgspec.structs.replace(want, positions=positions), names)
        names = [name for name in names if name not in refused]
        unserved |= dict.fromkeys(refused, "too many recalls wait for it")
        results, errors = _await_answers(redis, settings, clock, slot, names, timeout)
        return _build_answer(names, results, unserved | errors, want.budget)


def _choose_providers(
    roster: Roster, wanted: Sequence[str] | None, as_of: int | None
) -> tuple[list[str], dict[str, str]]:
    recalling = [name for name, info in roster.providers().items() if info.recall]
    for name in wanted or ():
        if name not in recalling:
            raise MissingProvider(
                f"no provider {name!r} answers recalls; known: {', '.join(recalling) or 'none'}"
            )
    names = list(wanted or recalling)
    served = roster.recalling_providers()
    if not set(served).intersection(names):
        raise NoWorker(
            "no live worker answers recalls; start one: memorybus up (or memorybus worker)"
        )
    unserved = {name: "no live worker serves it" for name in names if name not in served}
    if as_of is not None:
        able = {name for name, info in roster.providers().items() if info.as_of}
        unserved |= {name: _CANNOT_RECALL_THEN for name in names if name not in able}
    return [name for name in names if name not in unserved], unserved


def _await_answers(
    redis: Any, settings: Settings, clock: Clock, slot: str, names: Sequence[str], timeout: float
) -> tuple[dict[str, WarmResult], dict[str, str]]:
    keys = Keys(settings.namespace)
    began = clock.monotonic()
    while True:
        with redis.pipeline(transaction=False) as pipe:
            pipe.hgetall(keys.warm(slot))
            pipe.hgetall(keys.want(slot))
            warm, want = pipe.execute()
        results = warm_results(warm.items())
        errors = {
            k[2:].decode(): v.decode() for k, v in want.items() if k.startswith(_ERROR_PREFIX)
        }
        waited = clock.monotonic() - began
        if all(n in results or n in errors for n in names) or waited >= timeout:
            redis.delete(*keys.slot(slot))
            return results, errors
        clock.sleep(look_pause(waited))


def _build_answer(
    names: Sequence[str], results: dict[str, WarmResult], errors: dict[str, str], budget: int
) -> RecallAnswer:
    sections = [(name, results[name].lines) for name in names if name in results]
    silent = {name: "no answer in time" for name in names if name not in results}
    missing = silent | errors
    block = build_block(without_repeats(sections), budget)
    return RecallAnswer(block, items_of(results, names), missing)
