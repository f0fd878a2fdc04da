"""Which session a hook speaks of: a small state of ids, without effects.

Hermes gives a session's id to some hooks only, and tells of a ``/new`` late: the end of the old
session and the switch wait in a queue behind slow work, while the new session's first hooks come
at once. So an instance has two places:

- ``now``: where the agent is, by the newest sign of it. Prefetches, tools and compressions are its.
- ``settled``: how far the switches have come that were delivered. An end belongs to it.
"""

from collections import deque

_REMEMBERED = 256


class SessionTracker:
    """Where one instance is. It is used under the instance's lock alone.

    Attributes:
        now: the session the agent is in.
        settled: the session the delivered switches have led to.
    """

    def __init__(self, session_id: str) -> None:
        """Begin in the session that `initialize` named."""
        self.now = self.settled = session_id
        # Switches, as (from, to), that were inline and overtook the one they follow.
        self._ahead: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED)
        self._met = {session_id: None}

    def turn_started(self, hint: str) -> str:
        """Return the session of a turn that starts; the agent thread's own `hint` decides."""
        if hint:
            self._go(hint)
        return self.now

    def named(self, explicit: str) -> str:
        """Return the session of a hook; one that was never met is where the agent is now."""
        if explicit and explicit not in self._met:
            self._go(explicit)
        return explicit or self.now

    def switched(self, new_id: str, parent: str, *, reset: bool) -> None:
        """Note a switch from `parent` ("" if Hermes names none); to itself, it is no move."""
        if parent == new_id:
            self._go(new_id)
            return
        if parent and (parent != self.settled or self._is_ahead(new_id, parent, reset=reset)):
            self._ahead.append((parent, new_id))
            self._meet(parent)
            self._go(new_id)
            return
        if self.now in (self.settled, parent):
            self._go(new_id)
        self._meet(new_id)
        self.settled = new_id
        while self._ahead and self._ahead[0][0] == self.settled:
            self.settled = self._ahead.popleft()[1]

    def _is_ahead(self, new_id: str, parent: str, *, reset: bool) -> bool:
        """Say whether a switch from the settled session was inline and overtook one that waits.

        The agent came back to that session by an inline switch, which waits for the same. What
        waits in the queue begins anew, and where it led is known from the hooks that came since.
        """
        if not self._ahead:
            return False
        return not reset or (self.now == parent and new_id not in self._met)

    def _go(self, session_id: str) -> None:
        self.now = session_id
        self._meet(session_id)

    def _meet(self, session_id: str) -> None:
        self._met[session_id] = None
        while len(self._met) > _REMEMBERED:  # G10
            del self._met[next(iter(self._met))]
