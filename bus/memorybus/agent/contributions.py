"""What providers want kept in the summary of a compression: labelled, escaped, bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memorybus.agent.port import SessionBus
from memorybus.jobs.replies import Reply
from memorybus.jobs.waiting import AwaitedReplies
from memorybus.receipt import Receipt
from memorybus.redis.keys import Keys, partition_of
from memorybus.text.fence import escape, escape_inline


def gathered(bus: SessionBus, key: str, receipts: Sequence[Receipt], timeout: float) -> str:
    """Wait for what providers answer to a compression's events, which stand under `key`.

    See `Session.contributions`.
    """
    settings = bus.settings
    partition = partition_of(key, settings.partitions)
    ids = [receipt.event_id for receipt in receipts]

    def ask(redis: Any) -> AwaitedReplies:
        from memorybus.registry.roster import Roster

        return AwaitedReplies(
            partition, ids, Roster(redis, Keys(settings.namespace)).contributing_providers()
        )

    return labelled(
        bus.listener.wait_for_replies(ask, timeout).replies, settings.contribution_budget
    )


def labelled(replies: Mapping[str, Sequence[Reply]], budget: int) -> str:
    """Return one text of several providers' texts, in their order, each within a fair share.

    What a provider leaves of its share goes to the providers after it. The texts are data, and
    escaped as recalled memory is.
    """
    texts = {name: _said(said) for name, said in replies.items()}
    texts = {name: text for name, text in texts.items() if text}
    parts: list[str] = []
    for left, (name, text) in zip(range(len(texts), 0, -1), texts.items(), strict=True):
        part = f"From {escape_inline(name)}:\n{escape(text)}"[: max(0, budget // left)].rstrip()
        parts.append(part)
        budget -= len(part) + 2
    return "\n\n".join(part for part in parts if part)


def _said(said: Sequence[Reply]) -> str:
    return "\n".join(reply.text.strip() for reply in said if reply.text.strip())
