"""Requests whose askers wait: how a job's argument is read, and how it gets its reply."""

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec
from memorybus.config.settings import Settings
from memorybus.errors import Permanent
from memorybus.jobs import replies
from memorybus.jobs.inspect import Inspection
from memorybus.jobs.replies import Reply
from memorybus.jobs.tools import ToolRequest
from memorybus.msgspec_types import prepared
from memorybus.redis.keys import Keys
from memorybus.text.redact import describe_error
from redis import Redis

_ID = re.compile("[0-9a-f]{32}")

_Request = TypeVar("_Request", Inspection, ToolRequest)


def parse_request(body: str, kind: type[_Request]) -> _Request:
    """Parse a request, which may come from anybody who can write to Redis.

    Args:
        body: the request as JSON.
        kind: what it should be.

    Raises:
        Permanent: it is none, or nobody could be answered by its id.
    """
    try:
        request = msgspec.json.decode(body, type=prepared(kind))
    except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError) as error:
        raise Permanent(f"no {kind.__name__}: {error}") from error
    if not _ID.fullmatch(request.id):
        raise Permanent(f"no {kind.__name__}: its id is none")
    return request


def answer_request(
    redis: Redis,
    settings: Settings,
    partition: int,
    request: Inspection | ToolRequest,
    make: Callable[[], Reply],
) -> None:
    """Write the reply to a request where its asker looks for it.

    Args:
        redis: the log's Redis.
        settings: see `Settings`.
        partition: where the reply lies.
        request: who waits.
        make: makes the reply.

    Raises:
        Exception: whatever `make` raises, after the asker got the error.
    """
    key = Keys(settings.namespace).reply(partition, request.id)
    try:
        reply = make()
    except Exception as error:
        failed = Reply(error=describe_error(error, settings.secrets))
        replies.write_reply(redis, key, request.provider, failed)
        raise
    replies.write_reply(redis, key, request.provider, reply)
