"""Describes one provider's part in the answer to a prompt; pure."""

from typing import Literal

import msgspec
from memorybus.recall.health import RecentRecalls
from memorybus.recall.model import WarmResult

from memorybus_console.operations.preview.patient_asker import TimedReply

RecallOutcome = Literal["warm", "fresh", "late", "failed", "paused", "unserved"]
"""How a provider answered. ``warm``: its answer was ready; ``fresh``: it came in time; ``late``: it
came too late or not at all; ``failed``: the recall failed; ``paused``: after failures the provider
is not asked for a while; ``unserved``: no worker answers its recalls."""


class ProviderAnswer(msgspec.Struct, frozen=True):
    """One provider's part in the answer to a prompt.

    Attributes:
        provider: the provider.
        outcome: how it answered.
        ms: how long it took, in milliseconds; None if it was not asked, or did not answer.
        memories: how many memories it returned.
        given: how many of them stand in the block.
        why: why it did not answer; "" if it did.
    """

    provider: str
    outcome: RecallOutcome
    ms: float | None = None
    memories: int = 0
    given: int = 0
    why: str = ""


def describe_answer(
    provider: str,
    *,
    ready: WarmResult | None,
    asked: bool,
    reply: TimedReply | None,
    given: int,
    health: RecentRecalls,
) -> ProviderAnswer:
    """Return one provider's part.

    Args:
        provider: the provider.
        ready: the answer that was warm; None if there was none.
        asked: whether it was asked.
        reply: its reply; None if none came.
        given: how many of its memories stand in the block.
        health: how its recalls went lately.
    """
    if ready is not None:
        return ProviderAnswer(provider, "warm", 0.0, len(ready.lines), given)
    if asked:
        return _describe_reply(provider, reply, given, health.error)
    if health.paused:
        return ProviderAnswer(provider, "paused", given=given, why=health.error)
    why = "no live worker answers its recalls"
    return ProviderAnswer(provider, "unserved", given=given, why=why)


def _describe_reply(
    provider: str, reply: TimedReply | None, given: int, error: str
) -> ProviderAnswer:
    if reply is None:
        why = "no answer for as long as was waited"
        return ProviderAnswer(provider, "late", given=given, why=why)
    took = round(reply.after * 1000, 1)
    if reply.result is None:
        why = error or "its recall failed"
        return ProviderAnswer(provider, "failed", took, given=given, why=why)
    outcome: RecallOutcome = "fresh" if reply.in_time else "late"
    return ProviderAnswer(provider, outcome, took, len(reply.result.lines), given)
