"""Keeps one plugin instance for each session; above a limit, idle ones are closed."""

import contextlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from . import separation
from .failures import UNAVAILABLE, CallRefused
from .watch import Watch, WatchedCall

TranscriptMessage = dict[str, Any]
InstanceKey = tuple[str, tuple[str, ...], str]
"""A session, its owner, and all other facts about it. An instance serves only one such key."""

_OWNER_FIELDS = ("agent_identity", "user_id", "agent_workspace")
_OPTIONAL_FACTS = frozenset(("session_id", "platform", "agent_context"))
"""Facts that are left out of the third part of a key: its first part names the session, and a
recall may not know the others."""

_MAX_MESSAGES = 2_000


class PluginInstance:
    """An initialised plugin for one session.

    Attributes:
        plugin: the plugin's object; None after a failed write, until the next call makes another.
        transcript: the session's messages that this instance has seen, at most 2,000. Hermes passes
            the whole conversation to some hooks, while an event carries only its own turn.
    """

    def __init__(self, plugin: Any, opening: WatchedCall) -> None:
        self.plugin = plugin
        self.opening = opening  # the call that initialised it, whose threads may still work
        self.has_begun = False  # whether these threads were awaited once
        self.lock = threading.Lock()  # held while it is called
        self.transcript: list[TranscriptMessage] = []

    def drop_plugin(self) -> None:
        """Drop the plugin's object after a failed write, without ``shutdown``: it sends no more."""
        self.plugin = None
        self.has_begun = False

    def keep_transcript(self, messages: list[TranscriptMessage]) -> None:
        """Keep a transcript, or only its end if it is long."""
        self.transcript = messages[-_MAX_MESSAGES:]


class PluginInstances:
    """The open instances by session, least recently used first.

    Args:
        make: makes a plugin's object.
        watch: observes the threads of initialisations.
        limit: how many instances stay open; an instance is never closed while it is called.
    """

    def __init__(self, make: Callable[[], Any], watch: Watch, limit: int) -> None:
        self._make = make
        self._watch = watch
        self._limit = limit
        self._guard = threading.RLock()
        self._open: OrderedDict[InstanceKey, PluginInstance] = OrderedDict()

    def instance_for(self, session: Mapping[str, Any]) -> PluginInstance:
        """Return a session's instance; it is initialised if it is new or its last write failed."""
        return self._ensure_open(_key(session, session["session_id"]), session)

    def begin_switch(self, parent: str, session: Mapping[str, Any]) -> PluginInstance | None:
        """Return the instance that continues as `session`: the parent's, or the session's own.

        If there is neither, a new instance is opened, and the result is None.
        """
        name = _key(session, session["session_id"])
        with self._guard:
            known = self._key_before(session, parent) or (name if name in self._open else None)
            if known is not None:
                return self._ensure_open(known, {**session, "session_id": known[0]})
            self.instance_for(session)
            return None

    def finish_switch(self, parent: str, session: Mapping[str, Any]) -> None:
        """Move the parent's instance to the session, since it continues in Hermes."""
        name = _key(session, session["session_id"])
        with self._guard:
            before = self._key_before(session, parent)
            if before is not None:
                self._discard(name)
                self._open[name] = self._open.pop(before)

    def close(self) -> None:
        with self._guard:
            for name in list(self._open):
                self._discard(name)

    def _key_before(self, session: Mapping[str, Any], parent: str) -> InstanceKey | None:
        """Return the key of the parent's instance, which continues as another session.

        An instance with the same facts is preferred. Else it is the last one of the parent and the
        owner, since a session may be resumed in another chat.
        """
        if parent == session["session_id"]:
            return None
        same, own = _key(session, parent), (parent, _owner(session))
        others = (key for key in reversed(self._open) if key[:2] == own)
        return same if same in self._open else next(others, None)

    def _ensure_open(self, name: InstanceKey, session: Mapping[str, Any]) -> PluginInstance:
        with self._guard:
            if name not in self._open:
                self._open[name] = PluginInstance(*self._open_plugin(session))
                self._shrink(name)
            elif (instance := self._open[name]).plugin is None:
                instance.plugin, instance.opening = self._open_plugin(session)
            self._open.move_to_end(name)
            return self._open[name]

    def _open_plugin(self, session: Mapping[str, Any]) -> tuple[Any, WatchedCall]:
        """Return an initialised plugin; raise `CallRefused` if that fails: no event caused it."""
        plugin = self._make()
        try:
            with self._watch.call("initialize", writes=False) as opening:
                separation.initialize(plugin, session)
        except CallRefused:
            with contextlib.suppress(Exception):
                plugin.shutdown()
            raise
        except Exception as error:
            reason = f"the plugin could not be initialised: {type(error).__name__}: {error}"
            raise CallRefused(UNAVAILABLE, reason) from error
        return plugin, opening

    def _shrink(self, newest: InstanceKey) -> None:
        """Close the least recently used idle instances that are too many."""
        idle = [
            n for n, instance in self._open.items() if n != newest and not instance.lock.locked()
        ]
        for name in idle[: max(0, len(self._open) - self._limit)]:
            self._discard(name)

    def _discard(self, name: InstanceKey) -> None:
        """Shut down an instance, without ``on_session_end``: the session continues."""
        instance = self._open.pop(name, None)
        if instance is None or instance.plugin is None:
            return
        with contextlib.suppress(Exception):
            instance.plugin.shutdown()


def _key(session: Mapping[str, Any], session_id: str) -> InstanceKey:
    facts = {name: value for name, value in session.items() if name not in _OPTIONAL_FACTS}
    return session_id, _owner(session), json.dumps(facts, sort_keys=True)


def _owner(session: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(session.get(name, "") for name in _OWNER_FIELDS)
