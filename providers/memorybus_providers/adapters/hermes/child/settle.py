"""When a plugin's write is over: one adapter per plugin that works in threads.

They read private attributes of Hermes 0.19's plugins. One that lacks them is of another version:
then nothing is guessed, the provider is unavailable and says why.
"""

import threading
from typing import Any

from .failures import TRANSIENT, UNAVAILABLE, Refused
from .watch import Call

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
"""The hooks whose effects are waited for; the others only prepare."""

_PATIENCE = 2.0


class Settling:
    """For plugins of which nothing is known: waits a while for threads, cannot tell more.

    Attributes:
        fresh: a session switch opens another instance, since the plugin cannot switch.
        complaints: beginnings of quiet log messages that tell of a failed write.
    """

    fresh = False
    complaints: tuple[str, ...] = ()

    def opened(self, plugin: Any) -> None:
        """Prepare an instance that was just initialised."""

    def ready(self, plugin: Any) -> None:
        """Raise `Refused` if the plugin would drop a write now."""

    def settle(self, plugin: Any, hook: str, call: Call) -> None:
        """Wait until a write is over."""
        call.join(_PATIENCE)


class Synchronous(Settling):
    """For plugins whose hooks return when their work is done (holographic)."""

    complaints = ("Holographic memory_write mirror failed",)

    def settle(self, plugin: Any, hook: str, call: Call) -> None:
        """Nothing is left to wait for."""


class Threads(Settling):
    """For plugins that start a thread for each write, which ends with it.

    It waits without end: whoever asked ends this process when it takes too long, and so makes sure
    that nothing comes late.
    """

    def settle(self, plugin: Any, hook: str, call: Call) -> None:
        """Wait for the threads."""
        call.join()


class Mem0(Threads):
    """Its own breaker and a thread still at work make it drop turns without a word."""

    def ready(self, plugin: Any) -> None:
        """Refuse while the breaker is open; wait for a thread of before."""
        if attribute(plugin, "_backend") is None:
            why = getattr(plugin, "_init_error", "unknown error")
            raise Refused(UNAVAILABLE, f"mem0 has no backend: {why}", broken=True)
        _join(attribute(plugin, "_sync_thread"))
        if plugin._is_breaker_open():  # noqa: SLF001  it would drop the turn silently
            raise Refused(UNAVAILABLE, "mem0 pauses after failures (its own breaker)")

    def settle(self, plugin: Any, hook: str, call: Call) -> None:
        """Wait for the thread, which must have been started."""
        super().settle(plugin, hook, call)
        if hook == "sync_turn" and attribute(plugin, "_sync_thread") not in call.threads:
            raise Refused(TRANSIENT, "mem0 dropped the turn")


class Hindsight(Settling):
    """One writer thread takes from a queue; turns could be held back in memory."""

    def opened(self, plugin: Any) -> None:
        """Retain every turn: what is held back would be lost with the process."""
        attribute(plugin, "_retain_every_n_turns")
        plugin._retain_every_n_turns = 1  # noqa: SLF001

    def settle(self, plugin: Any, hook: str, call: Call) -> None:
        """Wait until the queue is empty and its last job done."""
        attribute(plugin, "_retain_queue").join()


class Honcho(Threads):
    """Its session is made in the background, and turns before that are dropped."""

    fresh = True
    complaints = (
        "Honcho sync_turn failed",
        "Honcho memory mirror failed",
        "Honcho session-end flush failed",
    )

    def ready(self, plugin: Any) -> None:
        """Wait until the session is there."""
        if attribute(plugin, "_session_initialized") or attribute(plugin, "_cron_skipped"):
            return
        plugin._start_session_init_background()  # noqa: SLF001
        _join(attribute(plugin, "_init_thread"))
        if not plugin._session_initialized:  # noqa: SLF001
            raise Refused(UNAVAILABLE, "honcho could not begin its session", broken=True)


ADAPTERS: dict[str, type[Settling]] = {
    "generic": Settling,
    "hindsight": Hindsight,
    "honcho": Honcho,
    "mem0": Mem0,
    "synchronous": Synchronous,
    "threads": Threads,
}


def attribute(plugin: Any, name: str) -> Any:
    """Return a private attribute that an adapter relies on.

    Raises:
        Refused: the plugin has none: it is of a version that the adapter does not know.
    """
    if not hasattr(plugin, name):
        raise Refused(
            UNAVAILABLE,
            f"this version of the plugin has no {name}, so that its writes cannot be awaited; "
            "set settle = 'generic' to run it nevertheless",
        )
    return getattr(plugin, name)


def _join(thread: threading.Thread | None) -> None:
    if thread is not None:
        thread.join()
