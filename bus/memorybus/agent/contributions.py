"""Collects the texts that providers want kept in the summary of a compression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memorybus.agent.port import SessionBus
from memorybus.jobs.waiting import AwaitedReplies, Reply
from memorybus.receipt import Receipt
from memorybus.redis.keys import Keys, partition_of
from memorybus.text.fence import escape, escape_inline


def gather_contributions(
    bus: SessionBus, key: str, receipts: Sequence[Receipt], timeout: float
) -> str:
    """Wait for the answers of providers to a compression's events, whose order key is `key`."""
    settings = bus.settings
    partition = partition_of(key, settings.partitions)
    ids = [receipt.event_id for receipt in receipts]

    def ask(redis: Any) -> AwaitedReplies:
        from memorybus.registry.roster import Roster

        return AwaitedReplies(
            partition, ids, Roster(redis, Keys(settings.namespace)).contributing_providers()
        )

    return label_contributions(
        bus.listener.wait_for_replies(ask, timeout).replies, settings.contribution_budget
    )


def label_contributions(replies: Mapping[str, Sequence[Reply]], budget: int) -> str:
    """Return one text that joins the providers' texts in order, each within a fair share.

    If a provider does not use up its share, the rest goes to the providers after it. The texts are
    data, and are escaped as recalled memory is.
    """
    texts = {name: _join_texts(said) for name, said in replies.items()}
    texts = {name: text for name, text in texts.items() if text}
    parts: list[str] = []
    for left, (name, text) in zip(range(len(texts), 0, -1), texts.items(), strict=True):
        part = f"From {escape_inline(name)}:\n{escape(text)}"[: max(0, budget // left)].rstrip()
        parts.append(part)
        budget -= len(part) + 2
    return "\n\n".join(part for part in parts if part)


def _join_texts(replies: Sequence[Reply]) -> str:
    return "\n".join(reply.text.strip() for reply in replies if reply.text.strip())
