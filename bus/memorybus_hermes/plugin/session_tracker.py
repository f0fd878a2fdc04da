"""Tracks which session a hook belongs to, and publishes what a switch between two means.

Hermes passes a session's id to some hooks only, and reports a ``/new`` late: the end of the old
session and the switch wait in a queue behind slow work, while the new session's first hooks come
at once. So an instance has two sessions:

- ``now``: the session that the agent is in, by its newest hook. It gets prefetches, tools and
  compressions.
- ``settled``: the session that the delivered switches have led to. It gets ends.
"""

from collections import deque
from collections.abc import Sequence
from typing import Literal

from memorybus import Session
from memorybus.redis.keys import recall_slot

from memorybus_hermes.plugin.shared import SharedBus

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


SwitchStep = Literal["stay", "rewind", "compress", "reset", "branch", "resume", "link"]

SHARED_STEPS: frozenset[SwitchStep] = frozenset(("rewind", "compress", "branch"))
"""Steps that apply to all people in a shared chat, because its window continues."""


def decide_step(
    left: str,
    new_id: str,
    *,
    reset: bool,
    rewound: bool,
    reason: str,
    early: bool,
    known: bool,
    there: bool,
) -> SwitchStep:
    """Return what a switch means.

    Args:
        reset: whether the conversation begins anew.
        reason: Hermes's word: new_session, resume, branch, compression, or "".
        early: whether hooks of the new session came before this switch, and began it.
        there: whether a delivered switch has led there already.
    """
    if rewound or reason == "compression":
        return "rewind" if rewound else "compress"
    if new_id == left:
        return "reset" if reset else "stay"
    if there:
        return "stay"  # the same switch again
    if reset:
        return "link" if early else "reset"
    return "branch" if reason == "branch" and not known else "resume"


def publish_step(
    step: SwitchStep, shared: SharedBus, session: Session, new_id: str, undone: Sequence[str] = ()
) -> None:
    """Publish a step, and remember the session to which it led and the items of its window.

    `undone` are the events that a rewind retracts.
    """
    if step == "stay":
        return
    went = (
        session.undo(*undone)
        if step == "rewind"
        else _switch_session(step, shared, session, new_id)
    )
    shared.keep(went)
    after, before = recall_slot(went.scope, went.id), recall_slot(session.scope, session.id)
    if step in {"rewind", "compress", "reset"}:
        shared.injected.forget(after)
    elif step == "branch":
        shared.injected.copy(before, after)
    if step == "compress" and after != before:
        shared.turns.carry(before, after)


def _switch_session(step: SwitchStep, shared: SharedBus, left: Session, new_id: str) -> Session:
    if step == "compress":
        return left.compressed(None if new_id == left.id else new_id)
    if step == "branch":
        return left.branch(new_id)
    if step == "resume":
        return left.switched_to(new_id, reason="resume")
    if step == "link":
        session = shared.session(left.scope, new_id)  # it has begun: keep its root and epoch
        session.came_from(left)
        return session
    begun = left.switched_to(new_id, reset=True)
    begun.warm_up()
    return begun
