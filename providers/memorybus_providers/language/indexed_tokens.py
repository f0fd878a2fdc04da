"""Chooses the tokens of a fact for an index; pure."""

from memorybus_providers.language.english import NAMES_IN_CAPITALS, SILENT
from memorybus_providers.language.words import in_capitals, parts_of, tokens

MIN_ENGLISH_SHARE = 0.2
"""A text with at least this share of English stop words counts as English. Its stop words are not
indexed: they are half of it, and no question asks for them. In other languages they are indexed,
since such a word may mean something there."""


def indexed_tokens(tags: str, content: str) -> set[str]:
    """Return the tokens of a fact that an index contains, each once."""
    found = set(tokens(f"{tags} {content}" if tags else content))
    kept = found - (SILENT - (NAMES_IN_CAPITALS & in_capitals(content)))
    return (
        found.union(parts_of(found)) if len(kept) > (1 - MIN_ENGLISH_SHARE) * len(found) else kept
    )
