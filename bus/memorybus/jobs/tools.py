"""Asks for a run of a reading tool: one RQ job in the queue of its provider's recall processes."""

import math
from typing import Any

import msgspec
from redis import Redis

from memorybus.config.settings import Settings
from memorybus.events import Scope, SessionRef
from memorybus.log.stream import read_head_numbers
from memorybus.recall.queue import JOB_TTL_SECONDS, enqueue_call
from memorybus.redis.keys import Keys
from memorybus.registry.roster import Roster

JOB = "memorybus_workers.jobs.tools.run"
"""The callable that the recall queues may run in addition to recalls."""


class ToolRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a reading tool (the job's one argument, as JSON)."""

    id: str  # 32 hex digits; the reply is found by it
    partition: int  # the partition under whose keys the reply is written
    provider: str  # the provider instance
    tool: str  # the provider's own name of the tool
    arguments: dict[str, Any]  # the arguments as the model gave them
    scope: Scope  # the owner of the memories
    session: SessionRef  # the session that asks
    # partitions whose present end must be applied first (read your writes)
    reads_after: tuple[int, ...] = ()
    # the dense numbers of these ends, filled in when the job is enqueued
    positions: dict[int, int] = {}


def ask_tool(redis: Redis, settings: Settings, request: ToolRequest, timeout: float) -> str:
    """Enqueue the run of a tool; return why nobody will run it, or ""."""
    keys = Keys(settings.namespace)
    if request.provider not in Roster(redis, keys).job_providers():
        return (
            f"no live worker runs the tools of {request.provider}; start one: memorybus up "
            "(or memorybus worker)"
        )
    body = msgspec.json.encode(_with_positions(redis, keys, request))
    if len(body) > settings.event_max_bytes:
        return f"a call of {len(body)} bytes; `event_max_bytes` is {settings.event_max_bytes}"
    life = min(JOB_TTL_SECONDS, max(1, math.ceil(timeout)))
    text = body.decode()
    return enqueue_call(
        settings, request.provider, JOB, text, request.id,
        timeout=timeout, life=life, at_front=True,
    )  # fmt: skip


def _with_positions(redis: Redis, keys: Keys, request: ToolRequest) -> ToolRequest:
    positions = read_head_numbers(redis, keys, request.reads_after)
    return msgspec.structs.replace(request, positions=positions)
