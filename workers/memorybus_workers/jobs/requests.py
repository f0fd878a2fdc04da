"""Parses the argument of a job whose asker waits, and writes the reply."""

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
        kind: the type of request that it should be.

    Raises:
        Permanent: it is not such a request, or its id does not have the form of an id.
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
    """Write the reply to a request under the key that its asker reads.

    Args:
        partition: the partition under whose keys the reply is written.
        make: makes the reply.

    Raises:
        Exception: any error of `make`, after the asker got it as the reply.
    """
    key = Keys(settings.namespace).reply(partition, request.id)
    try:
        reply = make()
    except Exception as error:
        failed = Reply(error=describe_error(error, settings.secrets))
        replies.write_reply(redis, key, request.provider, failed)
        raise
    replies.write_reply(redis, key, request.provider, reply)
