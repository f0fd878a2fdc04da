"""Decides how a session continues when Hermes switches (pure), and publishes that step."""

from collections.abc import Sequence
from typing import Literal

from memorybus import Session
from memorybus.redis.keys import recall_slot

from memorybus_hermes.plugin.shared import SharedBus

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
