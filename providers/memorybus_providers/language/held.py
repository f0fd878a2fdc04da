"""Chooses the tokens of a fact for an index; pure."""

from memorybus_providers.language.english import SILENT
from memorybus_providers.language.words import parts_of, tokens

ENGLISH = 0.2
"""A text with at least this share of English stop words counts as English. Its stop words are not
indexed: they are half of it, and no question asks for them. In other languages they are indexed,
since such a word may mean something there."""


def held_tokens(tags: str, content: str) -> set[str]:
    """Return the tokens of a fact that an index contains, each once."""
    held = set(tokens(f"{tags} {content}" if tags else content))
    kept = held - SILENT
    return held.union(parts_of(held)) if len(kept) > (1 - ENGLISH) * len(held) else kept
