"""Reads what providers add to a session's system prompt: fenced, and the same for its life.

Workers make this text as they make recalls (`RecallRequest.prompt`), for each agent, person and
workspace, ahead of the next session. The text that a session got first is noted on its host
(`HostSessions`) under its lineage, so that a model's prefix cache stays valid. Only an answer is
noted: "nothing" is one, and that none came in time is not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from memorybus.agent.port import SessionBus
from memorybus.errors import SpoolError
from memorybus.events import Scope
from memorybus.recall.model import prompt_slot
from memorybus.redis.keys import owner_slot
from memorybus.text.fence import Sections, build_block, escape

_log = logging.getLogger("memorybus")


def session_prompt(
    bus: SessionBus, scope: Scope, root: str, asked_at: Callable[[], float], known: str
) -> str:
    if not bus.settings.prompt_budget:
        return ""
    now = bus.clock.now_ms()
    try:
        kept = bus.sessions.prompt(scope, root, now)
        if kept is not None:
            return kept
        block = _build_ready_block(bus, scope, asked_at, known)
        return "" if block is None else bus.sessions.keep_prompt(scope, root, block, now)
    except SpoolError as error:  # the notes are lost, but the agent still gets its prompt (G9)
        _log.warning("a system prompt may change within its session: %s", error)
        return _build_ready_block(bus, scope, asked_at, known) or ""


def _build_ready_block(
    bus: SessionBus, scope: Scope, asked_at: Callable[[], float], known: str
) -> str | None:
    """Return the block of ready answers; None if no provider's answer was reached in time."""
    keys = bus.warm.keys(owner_slot(scope), prompt_slot(scope))
    sections = bus.warm.sections(keys)
    if not sections:
        bus.warm.await_results(keys, asked_at() + bus.settings.opening_wait)
        sections = bus.warm.sections(keys)
    if not sections:
        return None
    return build_block(list(new_sections(sections, known)), bus.settings.prompt_budget)


def new_sections(sections: Sections, known: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the sections that have a line which is not known already.

    A section is yielded whole, except for list items that an earlier section has. Text in brackets
    at the end of a line is ignored.
    """
    known_texts = set(map(_bare_text, escape(known).splitlines()))
    told: set[str] = set()
    for name, lines in sections:
        left = [text for text in lines if not (_is_item(text) and _bare_text(text) in told)]
        bare = [_bare_text(text) for text in left]
        if any(
            text not in known_texts and text.partition(" [")[0] not in known_texts for text in bare
        ):
            yield name, left
        told.update(bare)


def _is_item(line: str) -> bool:
    return line.lstrip().startswith("- ")


def _bare_text(line: str) -> str:
    return line.strip().removeprefix("- ")
