"""Waits until a plugin's write is over: there is one adapter for each plugin that uses threads.

The adapters read private attributes of the plugins of Hermes 0.19. If a plugin lacks one, it is of
another version; then nothing is guessed, and the provider is unavailable and says why.
"""

import re
import threading
from collections.abc import Callable
from typing import Any

from .failures import TRANSIENT, UNAVAILABLE, CallRefused, meaning_of_status
from .watch import WatchedCall

WRITES = frozenset(
    (
        "handle_tool_call",
        "on_delegation",
        "on_memory_write",
        "on_pre_compress",
        "on_session_end",
        "on_session_switch",
        "sync_turn",
    )
)
"""The hooks whose effects are awaited; the others only prepare."""

_SETTLE_SECONDS = 2.0

_EVENT = "memorybus_event"
"""The key of the event's id in the metadata of a Honcho message."""


class Settling:
    """The adapter for unknown plugins: it waits some time for threads, but cannot be certain.

    Attributes:
        reopens_on_switch: whether a session switch opens another instance, since the plugin cannot
            switch.
        failure_prefixes: beginnings of log messages of low levels that report a failed write.
    """

    reopens_on_switch = False
    failure_prefixes: tuple[str, ...] = ()

    def before_initialize(self, plugin: Any) -> None:
        """Prepare an instance that is about to be initialised."""

    def after_initialize(self, plugin: Any) -> None:
        """Prepare an instance that was just initialised."""

    def ensure_ready(self, plugin: Any) -> None:
        """Raise `CallRefused` if the plugin would drop a write now."""

    def begin_write(self, plugin: Any, call: WatchedCall, *, doubted: bool) -> bool:
        """Prepare for one write; say whether the backend has it already.

        Args:
            plugin: the instance.
            call: the hook and the event.
            doubted: whether an earlier try, whose outcome is unknown, may have stored it.
        """
        return False

    def settle(self, plugin: Any, call: WatchedCall) -> None:
        """Wait until a write is over."""
        call.join(_SETTLE_SECONDS)

    def after_failure(self, plugin: Any, call: WatchedCall) -> bool:
        """Clean up after a failed write; return whether the instance is kept.

        An instance that is kept may send again by itself what failed. So it is kept only if it may
        have turns in memory that count as applied already and would be lost with it.
        """
        return True


class ReopenedAfterFailure(Settling):
    """For plugins that keep no applied turns in memory: after a failure a new instance is made."""

    def after_failure(self, plugin: Any, call: WatchedCall) -> bool:
        """Drop the instance without ``shutdown``, so that it sends nothing that it still has."""
        return False


class Synchronous(ReopenedAfterFailure):
    """For plugins whose hooks return when their work is done (holographic)."""

    failure_prefixes = ("Holographic memory_write mirror failed",)

    def settle(self, plugin: Any, call: WatchedCall) -> None:
        """Do nothing: there is nothing left to wait for."""


class Threads(ReopenedAfterFailure):
    """For plugins that start a thread for each write, which ends or becomes idle after it.

    It waits without a limit: the parent kills this process if it takes too long, so that nothing is
    written late.
    """

    def settle(self, plugin: Any, call: WatchedCall) -> None:
        """Wait for the threads."""
        call.join()


class Mem0(Threads):
    """For mem0, which silently drops turns while its breaker is open or a thread still works."""

    def ensure_ready(self, plugin: Any) -> None:
        """Refuse while the breaker is open; wait for an earlier thread."""
        if require_attribute(plugin, "_backend") is None:
            why = getattr(plugin, "_init_error", "unknown error")
            raise CallRefused(UNAVAILABLE, f"mem0 has no backend: {why}")
        _join(require_attribute(plugin, "_sync_thread"))
        if plugin._is_breaker_open():  # noqa: SLF001  it would drop the turn silently
            raise CallRefused(UNAVAILABLE, "mem0 pauses after failures (its own breaker)")

    def settle(self, plugin: Any, call: WatchedCall) -> None:
        """Wait for the thread, which must have been started."""
        super().settle(plugin, call)
        if (
            call.hook == "sync_turn"
            and require_attribute(plugin, "_sync_thread") not in call.threads
        ):
            raise CallRefused(TRANSIENT, "mem0 dropped the turn")

    def after_failure(self, plugin: Any, call: WatchedCall) -> bool:
        """Close its connections; it keeps no turns in memory."""
        plugin.shutdown()
        return False


class Hindsight(ReopenedAfterFailure):
    """For hindsight, which has a writer thread with a queue, and may delay turns in memory."""

    def after_initialize(self, plugin: Any) -> None:
        """Retain every turn: a turn that is delayed would be lost with the process."""
        require_attribute(plugin, "_retain_every_n_turns")
        plugin._retain_every_n_turns = 1  # noqa: SLF001

    def begin_write(self, plugin: Any, call: WatchedCall, *, doubted: bool) -> bool:
        """Let a session switch send nothing, since every turn was sent when it came."""
        if call.hook == "on_session_switch":
            require_attribute(plugin, "_session_turns").clear()
        return False

    def settle(self, plugin: Any, call: WatchedCall) -> None:
        """Wait until the queue is empty and its last job is done."""
        require_attribute(plugin, "_retain_queue").join()

    def after_failure(self, plugin: Any, call: WatchedCall) -> bool:
        """End the writer; the failed write is no longer in the queue."""
        plugin.shutdown()
        return False


class Honcho(Threads):
    """For honcho, which makes its session in the background, and drops turns before that.

    Every message has the id of its event, by which a turn in doubt is looked up in Honcho.
    """

    reopens_on_switch = True
    failure_prefixes = (
        "Honcho sync_turn failed",
        "Honcho memory mirror failed",
        "Honcho session-end flush failed",
    )

    def __init__(self) -> None:
        """Begin without a write."""
        self._event = ""
        self._marks = False

    def before_initialize(self, plugin: Any) -> None:
        """Let it send each turn within the call, without a queue and a permanent writer thread."""
        begin = require_attribute(plugin, "_do_session_init")

        def begin_session(config: Any, *args: Any, **options: Any) -> None:
            require_attribute(config, "write_frequency")
            config.write_frequency = "turn"
            begin(config, *args, **options)

        plugin._do_session_init = begin_session  # noqa: SLF001

    def ensure_ready(self, plugin: Any) -> None:
        """Wait until the session is made, and let only the bus repeat requests."""
        if require_attribute(plugin, "_cron_skipped"):
            return
        if not require_attribute(plugin, "_session_initialized"):
            plugin._start_session_init_background()  # noqa: SLF001
            _join(require_attribute(plugin, "_init_thread"))
        if not plugin._session_initialized:  # noqa: SLF001
            why = getattr(plugin, "_init_error", "")
            raise CallRefused(UNAVAILABLE, f"honcho could not begin its session: {why}")
        http = require_attribute(require_attribute(plugin, "_manager").honcho, "_http")
        require_attribute(http, "max_retries")
        http.max_retries = 0

    def begin_write(self, plugin: Any, call: WatchedCall, *, doubted: bool) -> bool:
        """Mark messages with the event's id, and look up a turn that is in doubt."""
        self._event = call.event
        if call.hook != "sync_turn" or require_attribute(plugin, "_cron_skipped"):
            return False
        session = _honcho_session(plugin)
        self._mark_messages(type(session))
        if not doubted:
            return False
        found = session.messages(filters={"metadata": {_EVENT: call.event}})
        return next(iter(found), None) is not None

    def _mark_messages(self, kind: Any) -> None:
        """Let sessions of the SDK add the event's id to the messages that they send."""
        if self._marks:
            return
        self._marks = True
        add = require_attribute(kind, "add_messages")

        def add_messages(session: Any, messages: Any) -> Any:
            for one in messages:
                one.metadata = {**(one.metadata or {}), _EVENT: self._event}
            return add(session, messages)

        kind.add_messages = add_messages


class RetainDB(ReopenedAfterFailure):
    """For retaindb, which queues turns on disk, and sends failed ones when it is opened again."""

    failure_prefixes = ("RetainDB memory mirror failed",)

    def after_initialize(self, plugin: Any) -> None:
        """Send each turn within the call, without the queue, since the bus keeps unsent turns."""
        queue = require_attribute(plugin, "_queue")
        require_attribute(queue, "enqueue")
        client = require_attribute(plugin, "_client")
        client.request = _classify_by_text(require_attribute(client, "request"))
        queue.enqueue = require_attribute(client, "ingest_session")

    def settle(self, plugin: Any, call: WatchedCall) -> None:
        """Do nothing: there is nothing left to wait for."""

    def after_failure(self, plugin: Any, call: WatchedCall) -> bool:
        """End its thread."""
        plugin.shutdown()
        return False


class Supermemory(Threads):
    """For supermemory, which keeps turns in memory until their session ends or is switched.

    So a failed instance is kept: only it has the earlier turns, which count as applied.
    """

    failure_prefixes = (
        "Supermemory on_memory_write failed",
        "Supermemory session-switch ingest failed",
    )

    def __init__(self) -> None:
        """Begin without a write."""
        self._call: WatchedCall | None = None
        self._before: tuple[str, list[Any]] = ("", [])

    def ensure_ready(self, plugin: Any) -> None:
        """Refuse writes that the plugin would drop because it has no client."""
        if require_attribute(plugin, "_client") is None:
            raise CallRefused(
                UNAVAILABLE, "supermemory has no client: its package or key is missing"
            )

    def begin_write(self, plugin: Any, call: WatchedCall, *, doubted: bool) -> bool:
        """Save the turns, which an end or a switch of the session drops even if it fails."""
        turns = list(require_attribute(plugin, "_session_turns"))
        self._call, self._before = call, (require_attribute(plugin, "_session_id"), turns)
        return False

    def after_failure(self, plugin: Any, call: WatchedCall) -> bool:
        """Restore the turns that the call would have sent, so that it can be repeated."""
        if self._call is call:
            plugin._session_id, plugin._session_turns = self._before  # noqa: SLF001
        return True


class OpenViking(Threads):
    """For openviking, which sends a turn up to four times, or never if its server was away."""

    failure_prefixes = ("OpenViking memory mirror failed",)

    def __init__(self) -> None:
        """Begin without a failure."""
        self._failure: Exception | None = None

    def after_initialize(self, plugin: Any) -> None:
        """Let all later requests of a call fail after one has failed: the bus tries again."""
        make = require_attribute(plugin, "_new_client")

        def new_client() -> Any:
            client = make()
            client.post = self._once(require_attribute(client, "post"))
            return client

        plugin._new_client = new_client  # noqa: SLF001

    def ensure_ready(self, plugin: Any) -> None:
        """Refuse writes that the plugin would drop because it has no client."""
        if require_attribute(plugin, "_client") is None:
            raise CallRefused(UNAVAILABLE, "openviking's server was not reached")

    def begin_write(self, plugin: Any, call: WatchedCall, *, doubted: bool) -> bool:
        """Forget the failure of an earlier call."""
        self._failure = None
        return False

    def _once(self, post: Callable[..., Any]) -> Callable[..., Any]:
        def post_once(*args: Any, **options: Any) -> Any:
            if self._failure is not None:
                raise self._failure
            try:
                return post(*args, **options)
            except Exception as error:
                self._failure = error
                raise

        return post_once


ADAPTERS: dict[str, type[Settling]] = {
    "generic": Settling,
    "hindsight": Hindsight,
    "honcho": Honcho,
    "mem0": Mem0,
    "openviking": OpenViking,
    "retaindb": RetainDB,
    "supermemory": Supermemory,
    "synchronous": Synchronous,
    "threads": Threads,
}


def require_attribute(plugin: Any, name: str) -> Any:
    """Return a private attribute that an adapter relies on.

    Raises:
        CallRefused: the plugin lacks it, so the adapter does not know this version of the plugin.
    """
    if not hasattr(plugin, name):
        raise CallRefused(
            UNAVAILABLE,
            f"this version of the plugin has no {name}, so that its writes cannot be awaited; "
            "set settle = 'generic' to run it nevertheless",
        )
    return getattr(plugin, name)


def _honcho_session(plugin: Any) -> Any:
    manager = require_attribute(plugin, "_manager")
    session = require_attribute(manager, "get_or_create")(require_attribute(plugin, "_session_key"))
    return require_attribute(manager, "_sessions_cache")[session.honcho_session_id]


def _classify_by_text(request: Callable[..., Any]) -> Callable[..., Any]:
    """Return RetainDB's request function, with errors classified by the status in their text."""

    def request_classified(*args: Any, **options: Any) -> Any:
        try:
            return request(*args, **options)
        except RuntimeError as error:
            status = re.search(r"failed \((\d{3})\)", str(error))
            means = meaning_of_status(int(status[1])) if status else TRANSIENT
            raise CallRefused(means, str(error)) from error

    return request_classified


def _join(thread: threading.Thread | None) -> None:
    if thread is not None:
        thread.join()
