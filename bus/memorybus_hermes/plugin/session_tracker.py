"""Tracks which session a hook belongs to: a small state of ids, without side effects.

Hermes passes a session's id to some hooks only, and reports a ``/new`` late: the end of the old
session and the switch wait in a queue behind slow work, while the new session's first hooks come
at once. So an instance has two sessions:

- ``now``: the session that the agent is in, by its newest hook. It gets prefetches, tools and
  compressions.
- ``settled``: the session that the delivered switches have led to. It gets ends.
"""

from collections import deque

_MAX_REMEMBERED = 256


class SessionTracker:
    """The sessions of one instance. It is used only under the instance's lock.

    Attributes:
        settled: the session the delivered switches have led to.
    """

    def __init__(self, session_id: str) -> None:
        self.now = self.settled = session_id
        # Switches (from, to) that were delivered inline, before an earlier one still in the queue.
        self._ahead: deque[tuple[str, str]] = deque(maxlen=_MAX_REMEMBERED)
        self._met = {session_id: None}

    def enter(self, hint: str) -> str:
        """Return the session the agent is in: the `hint` of its thread, if there is one."""
        if hint:
            self._move_to(hint)
        return self.now

    def resolve(self, explicit: str) -> str:
        """Return the session of a hook; an unknown one becomes the agent's current session."""
        if explicit and explicit not in self._met:
            self._move_to(explicit)
        return explicit or self.now

    def switch(self, new_id: str, parent: str, *, reset: bool) -> None:
        """Note a switch from `parent`, "" if Hermes names none; they may be the same session."""
        if parent == new_id:
            self._move_to(new_id)
            return
        if parent and (parent != self.settled or self._is_ahead(new_id, parent, reset=reset)):
            self._ahead.append((parent, new_id))
            self._remember(parent)
            self._move_to(new_id)
            return
        if self.now in (self.settled, parent):
            self._move_to(new_id)
        self._remember(new_id)
        self.settled = new_id
        while self._ahead and self._ahead[0][0] == self.settled:
            self.settled = self._ahead.popleft()[1]

    def _is_ahead(self, new_id: str, parent: str, *, reset: bool) -> bool:
        """Return whether a switch from the settled session was inline and overtook a queued one.

        The agent then came back to that session by an inline switch that waits for the queued one,
        too. Queued switches begin new sessions, which are known from hooks that came since.
        """
        if not self._ahead:
            return False
        return not reset or (self.now == parent and new_id not in self._met)

    def _move_to(self, session_id: str) -> None:
        self.now = session_id
        self._remember(session_id)

    def _remember(self, session_id: str) -> None:
        self._met[session_id] = None
        while len(self._met) > _MAX_REMEMBERED:  # G10
            del self._met[next(iter(self._met))]
