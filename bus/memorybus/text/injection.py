"""Puts labelled memories into a message: sanitise, build, inject.

`Session.prefetch` returns a finished block. These three functions are for an agent that has texts
from other sources, such as a registry of memory providers; they use `fence`.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from memorybus.text.fence import MAX_BLOCK, build_block, escape, line

Content: TypeAlias = str | list[dict[str, Any]] | None
"""What an OpenAI-style message may hold: text, parts, or nothing."""

Contexts: TypeAlias = Sequence[tuple[str, str]]
"""Texts, best first, each with a label that says where it is from."""


def sanitise(text: str) -> str:
    """Return a text that neither opens nor closes a block: escaped, with nothing removed."""
    return escape(text)


def build(contexts: Contexts, budget: int = MAX_BLOCK) -> str | None:
    """Return one block of all texts, each under its label, or None if there is nothing to show.

    Args:
        contexts: labels and texts, not escaped. Texts with the same label stand together.
        budget: characters of the block at most; a text that does not fit is left out entirely.
    """
    sections: dict[str, list[str]] = {}
    for label, text in contexts:
        if text.strip():
            sections.setdefault(label, []).append(line(text.strip()))
    return build_block(list(sections.items()), budget) or None


def inject(content: Content, contexts: Contexts, budget: int = MAX_BLOCK) -> Content:
    """Return a message's content with the block of `contexts` after it; `content` is not changed.

    A text gets the block after an empty line, a list of parts gets one more part, and an empty
    content becomes the block. If there is nothing to show, `content` itself is returned.
    """
    block = build(contexts, budget)
    if block is None:
        return content
    if isinstance(content, list):
        return [*content, {"type": "text", "text": block}]
    return f"{content}\n\n{block}" if content else block
