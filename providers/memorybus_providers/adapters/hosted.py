"""Calls hosted providers for adapters: options, coroutines, deadlines and errors."""

import inspect
import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from memorybus.clock import Clock

from memorybus_providers.base import ProviderConfig
from memorybus_providers.errors import Permanent, ProviderError, Transient, Unavailable
from memorybus_providers.remote.loop import PrivateLoop

_TRANSIENT_ERROR_WORDS = ("Timeout", "Connect", "Network", "RateLimit", "Transport", "Unavailable")
"""Words in the names of temporary errors of HTTP libraries, some of which are not an `OSError`."""

_RETRYABLE_STATUSES = (408, 425, 429)


def options(config: ProviderConfig) -> dict[str, Any]:
    """Return an instance's options; ``{home}`` in a text is replaced by its own directory."""
    return {key: _fill_in_home(value, config.home) for key, value in config.options.items()}


def _fill_in_home(value: Any, home: Path) -> Any:
    if isinstance(value, str):
        return value.replace("{home}", str(home))
    if isinstance(value, Mapping):
        return {key: _fill_in_home(inner, home) for key, inner in value.items()}
    return value


def classify_error(error: Exception, what: str) -> ProviderError:
    """Return the provider's error for an error of a hosted provider (see `errors`).

    A temporary error (a time-out, a lost connection, a full disk, HTTP 408, 425, 429 and 5xx) is
    `Transient`, a refused connection is `Unavailable`, and any other is `Permanent`.
    """
    if isinstance(error, ProviderError):
        return error
    said = f"{what}: {type(error).__name__}: {error}"
    if isinstance(error, ConnectionRefusedError):
        return Unavailable(said)
    return Transient(said) if _may_pass(error) else Permanent(said)


def _may_pass(error: Exception) -> bool:
    status = _status(error)
    if status is not None:
        return status in _RETRYABLE_STATUSES or status >= 500
    if isinstance(error, OSError | EOFError):
        return True
    names = [kind.__name__ for kind in type(error).__mro__]
    return any(word in name for name in names for word in _TRANSIENT_ERROR_WORDS)


def _status(error: Exception) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return status
    return None


class Caller:
    """Calls methods; those that are coroutines run on one private loop in one thread.

    May be used from any thread. The loop starts with the first coroutine.
    """

    def __init__(self, name: str) -> None:
        self._loop = PrivateLoop(name)

    def call(self, what: str, method: Callable[..., Any], *args: Any, deadline: float) -> Any:
        """Return the result of a method; await it for `deadline` seconds if it is awaitable.

        For any other method, the caller must watch the deadline.

        Raises:
            ProviderError: the method's error, classified; `Transient` after the deadline.
        """
        try:
            result = method(*args)
            return self._loop.wait_for(result, deadline) if inspect.isawaitable(result) else result
        except Exception as error:
            raise classify_error(error, what) from error

    def close(self) -> None:
        """Stop the loop and cancel what still runs; safe to call twice."""
        self._loop.close()


def call_in_parallel(
    calls: Mapping[str, Callable[[], Any]], deadline: float, clock: Clock
) -> dict[str, Any]:
    """Make each call in its own thread and return the answers within `deadline` seconds.

    Returns:
        The result, the exception or a `TimeoutError` of each call, by name. A late call continues
        in its thread, and its result is dropped.
    """
    answers: queue.Queue[tuple[str, Any]] = queue.Queue()
    for name, call in calls.items():
        threading.Thread(
            target=_put_answer, args=(answers, name, call), name=name, daemon=True
        ).start()
    found: dict[str, Any] = {}
    until = clock.monotonic() + deadline
    while len(found) < len(calls):
        try:
            name, answer = answers.get(timeout=max(0.0, until - clock.monotonic()))
        except queue.Empty:
            break
        found[name] = answer
    late = TimeoutError(f"no answer within {deadline:g} s")
    return {name: found.get(name, late) for name in calls}


def _put_answer(
    answers: "queue.Queue[tuple[str, Any]]", name: str, call: Callable[[], Any]
) -> None:
    try:
        answers.put((name, call()))
    except Exception as error:
        answers.put((name, error))


def as_object(result: Any) -> Mapping[str, Any]:
    """Return a tool's result as an object; Hermes's tools return the JSON text of one."""
    if isinstance(result, str):
        try:
            result = msgspec.json.decode(result)
        except (msgspec.DecodeError, UnicodeError):
            return {"result": result}
    return result if isinstance(result, Mapping) else {"result": result}
