"""Memories into a message, for an agent that has them as labelled texts: sanitise, build, inject.

`Session.prefetch` returns a block that is built already. These three are for an agent with texts
of its own sources, as registries of memory providers hand them out; they rest on `fence`.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from memorybus.text.fence import MAX_BLOCK, build_block, escape, line

Content: TypeAlias = str | list[dict[str, Any]] | None
"""What an OpenAI-style message may hold: text, parts, or nothing."""

Contexts: TypeAlias = Sequence[tuple[str, str]]
"""Texts with the label of where each is from, best first."""


def sanitise(text: str) -> str:
    """Return a text that closes no block and opens none: escaped, nothing taken away."""
    return escape(text)


def build(contexts: Contexts, budget: int = MAX_BLOCK) -> str | None:
    """Return one block of all texts, each under its label, or None if there is nothing to show.

    Args:
        contexts: labels and texts; neither need be escaped. Texts of one label stand together.
        budget: characters of the block at most; a text that does not fit is left out whole.
    """
    sections: dict[str, list[str]] = {}
    for label, text in contexts:
        if text.strip():
            sections.setdefault(label, []).append(line(text.strip()))
    return build_block(list(sections.items()), budget) or None


def inject(content: Content, contexts: Contexts, budget: int = MAX_BLOCK) -> Content:
    """Return a message's content with the block of `contexts` after it; `content` stays as it is.

    A text gets the block after an empty line, parts get one more, nothing becomes the block. If
    there is nothing to show, `content` itself comes back.
    """
    block = build(contexts, budget)
    if block is None:
        return content
    if isinstance(content, list):
        return [*content, {"type": "text", "text": block}]
    return f"{content}\n\n{block}" if content else block
