"""What providers add to a session's system prompt: ready, fenced, and the same for its life.

Made by workers as recalls are (`Want.prompt`), for each agent, person and workspace, whenever a
session begins and after turns, so that the next session finds it ready. What a session was shown
first is noted on its host (`HostSessions`) under its lineage: a branch and a compression go on
with the same prompt, so that a model's prefix cache holds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memorybus.errors import SpoolError
from memorybus.recall.model import prompt_slot
from memorybus.redis.keys import owner_slot
from memorybus.text.fence import build_block, escape

if TYPE_CHECKING:
    from memorybus.agent.client import MemoryBus
    from memorybus.agent.session import Session

_log = logging.getLogger("memorybus")

Sections = Sequence[tuple[str, Sequence[str]]]


def of_session(bus: MemoryBus, session: Session, known: str) -> str:
    """Return a session's part of the system prompt; see `Session.system_prompt`."""
    if not bus.settings.prompt_budget:
        return ""
    now = bus.clock.now_ms()
    try:
        kept = bus.sessions.prompt(session.scope, session.ref.root, now)
        if kept is not None:
            return kept
        block = _ready(bus, session, known)
        return bus.sessions.keep_prompt(session.scope, session.ref.root, block, now)
    except SpoolError as error:  # its notes are lost, the agent's prompt need not be (G9)
        _log.warning("a system prompt may change within its session: %s", error)
        return _ready(bus, session, known)


def _ready(bus: MemoryBus, session: Session, known: str) -> str:
    """Return the block of what is ready; the first of all is waited for a moment."""
    owner, slot = owner_slot(session.scope), prompt_slot(session.scope)
    sections = bus.warm.sections(owner, slot, "")
    if not sections:
        bus.warm.await_results(owner, slot, session.prompt_asked() + bus.settings.opening_wait)
        sections = bus.warm.sections(owner, slot, "")
    return build_block(list(_news(sections, known)), bus.settings.prompt_budget)


def _news(sections: Sections, known: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the sections that hold a line which is not known already, whole.

    A heading is the same whatever numbers it has in brackets at its end.
    """
    held = {text.strip() for text in escape(known).splitlines()}
    for name, lines in sections:
        texts = [text.strip() for text in lines]
        if any(text not in held and text.partition(" [")[0] not in held for text in texts):
            yield name, lines
