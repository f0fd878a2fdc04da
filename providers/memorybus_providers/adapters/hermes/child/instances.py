"""One plugin instance per session, up to a bound; the least used is closed when it is idle."""

import contextlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from . import apart
from .failures import UNAVAILABLE, CallRefused
from .settle import Settling
from .watch import WatchedCall

Message = dict[str, Any]
Key = tuple[str, tuple[str, ...], str]
"""A session, whose it is, and all that was told of it: an instance answers for nothing else."""

_WHOSE = ("agent_identity", "user_id", "agent_workspace")
_UNTOLD = frozenset(("session_id", "platform", "agent_context"))
"""What a recall may not know of the session that it is for."""

_LONGEST = 2_000


class PluginInstance:
    """A plugin at work for one session.

    Attributes:
        plugin: the plugin's object; None after a failed write, until the next call opens another.
        proven: whether it has written a turn: what a turn before it left in doubt is settled.
        lock: held while it is called.
        transcript: the session's messages as far as this instance has seen them, at most 2,000:
            Hermes hands the whole conversation to some hooks, an event carries its own turn.
    """

    def __init__(self, plugin: Any) -> None:
        """Begin with an empty transcript."""
        self.plugin = plugin
        self.proven = False
        self.lock = threading.Lock()
        self.transcript: list[Message] = []

    def drop_plugin(self) -> None:
        """Go on without the plugin's object, whose write failed."""
        self.plugin = None
        self.proven = False

    def keep_transcript(self, messages: list[Message]) -> None:
        """Remember the transcript, its end if it is long."""
        self.transcript = messages[-_LONGEST:]


class PluginInstances:
    """The open instances by session, least recently used first.

    Args:
        make: makes an instance.
        settling: see `Settling`.
        limit: how many stay open; those that are being called are never closed.
    """

    def __init__(self, make: Callable[[], Any], settling: Settling, limit: int) -> None:
        """Open nothing yet."""
        self._make = make
        self._settling = settling
        self._limit = limit
        self._guard = threading.RLock()
        self._open: OrderedDict[Key, PluginInstance] = OrderedDict()

    def instance_for(self, session: Mapping[str, Any]) -> PluginInstance:
        """Return a session's instance, initialised with `session` if it is new or failed."""
        return self._ensure_open(_key(session, session["session_id"]), session)

    def begin_switch(self, parent: str, session: Mapping[str, Any]) -> PluginInstance | None:
        """Return the instance that is to go on as `session`: the parent's, or that of the id.

        None if there is neither, or the plugin cannot switch: then a new one is open.
        """
        name = _key(session, session["session_id"])
        with self._guard:
            known = self._key_before(session, parent) or (name if name in self._open else None)
            if known is not None and not self._settling.reopens_on_switch:
                return self._ensure_open(known, {**session, "session_id": known[0]})
            self.instance_for(session)
            return None

    def finish_switch(self, parent: str, session: Mapping[str, Any]) -> None:
        """Move the parent's instance, as the one instance of a Hermes process goes on."""
        name = _key(session, session["session_id"])
        with self._guard:
            before = self._key_before(session, parent)
            if before is not None:
                self._discard(name)
                self._open[name] = self._open.pop(before)

    def close(self) -> None:
        """Close all of them."""
        with self._guard:
            for name in list(self._open):
                self._discard(name)

    def _key_before(self, session: Mapping[str, Any], parent: str) -> Key | None:
        """Return the key of the instance that goes on as another session of its owner.

        That of the same chat, if there is one: who resumes a session may have been elsewhere.
        """
        if parent == session["session_id"]:
            return None
        same, own = _key(session, parent), (parent, _owner(session))
        others = (key for key in reversed(self._open) if key[:2] == own)
        return same if same in self._open else next(others, None)

    def _ensure_open(self, name: Key, session: Mapping[str, Any]) -> PluginInstance:
        with self._guard:
            if name not in self._open:
                self._open[name] = PluginInstance(self._open_plugin(session))
                self._shrink(name)
            elif self._open[name].plugin is None:
                self._open[name].plugin = self._open_plugin(session)
            self._open.move_to_end(name)
            return self._open[name]

    def _open_plugin(self, session: Mapping[str, Any]) -> Any:
        """Raise `CallRefused` if there is none to be had: that is no event's fault."""
        plugin = self._make()
        self._settling.before_initialize(plugin)
        try:
            apart.initialize(plugin, session)
        except CallRefused:
            with contextlib.suppress(Exception):
                plugin.shutdown()
            raise
        except Exception as error:
            said = f"the plugin could not be initialised: {type(error).__name__}: {error}"
            raise CallRefused(UNAVAILABLE, said) from error
        self._settling.after_initialize(plugin)
        return plugin

    def _shrink(self, newest: Key) -> None:
        """Close the least used instances that nobody calls, until the number is kept."""
        idle = [n for n, one in self._open.items() if n != newest and not one.lock.locked()]
        for name in idle[: max(0, len(self._open) - self._limit)]:
            self._discard(name)

    def _discard(self, name: Key) -> None:
        """Quiesce and shut down; ``on_session_end`` is not made up, the session goes on."""
        instance = self._open.pop(name, None)
        if instance is None or instance.plugin is None:
            return
        with contextlib.suppress(Exception):
            self._settling.settle(instance.plugin, WatchedCall("shutdown", writes=True))
        with contextlib.suppress(Exception):
            instance.plugin.shutdown()


def _key(session: Mapping[str, Any], session_id: str) -> Key:
    told = {name: value for name, value in session.items() if name not in _UNTOLD}
    return session_id, _owner(session), json.dumps(told, sort_keys=True)


def _owner(session: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(session.get(name, "") for name in _WHOSE)
