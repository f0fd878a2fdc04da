"""Errors of the bus as problems of HTTP (RFC 9457)."""

from collections.abc import Collection
from typing import Final

import msgspec
from memorybus.errors import (
    ArchiveError,
    ConfigError,
    EventTooLarge,
    InvalidEvent,
    LogError,
    MemoryBusError,
    MissingEvent,
    NoWorker,
    RecallError,
    SpoolError,
)
from memorybus.text.redact import masked

from memorybus_console.gateway.keys import NoAccess, NotAllowed

_STATUSES: Final[tuple[tuple[type[Exception], int], ...]] = (
    (NoAccess, 401),
    (NotAllowed, 403),
    (MissingEvent, 404),
    (EventTooLarge, 413),
    (InvalidEvent, 422),
    (msgspec.ValidationError, 422),
    (msgspec.DecodeError, 400),
    (ConfigError, 422),
    (NoWorker, 503),
    (SpoolError, 503),
    (LogError, 503),
    (ArchiveError, 503),
    (RecallError, 503),
    (MemoryBusError, 409),
)
"""The status of each kind of error; the first that fits counts."""

_RETRY_SECONDS: Final = 2


class ProblemDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request was not carried out.

    Attributes:
        type: the kind of problem, as a name that stays.
        title: the same for people.
        status: the HTTP status.
        detail: what happened, why, and what to do.
        retry_after: after how many seconds the same request may succeed; 0 if it will not.
    """

    type: str
    title: str
    status: int
    detail: str
    retry_after: int = 0


class RequestRefused(Exception):
    """A request that is refused at the edge.

    Args:
        status: the HTTP status.
        name: the kind, in CamelCase.
        detail: what happened, why, and what to do.
    """

    def __init__(self, status: int, name: str, detail: str) -> None:
        super().__init__(detail)
        self.problem = make_problem(status, name, detail)


def problem_of(error: Exception, secrets: Collection[str]) -> ProblemDetails:
    """Return an error as a problem, without secrets; pure."""
    if isinstance(error, RequestRefused):
        return error.problem
    status = next((code for kind, code in _STATUSES if isinstance(error, kind)), 500)
    detail = "an error in memorybus; see the log of this process" if status == 500 else str(error)
    return make_problem(status, type(error).__name__, masked(detail, secrets))


def make_problem(status: int, name: str, detail: str) -> ProblemDetails:
    """Return a problem; pure.

    Args:
        status: the HTTP status.
        name: the kind, in CamelCase.
        detail: what happened, why, and what to do.
    """
    words = "".join(f" {sign.lower()}" if sign.isupper() else sign for sign in name).strip()
    kind = f"urn:memorybus:problem:{words.replace(' ', '-')}"
    return ProblemDetails(
        kind, words, status, detail, _RETRY_SECONDS if status in (429, 503) else 0
    )
