"""Which tokens an index holds of a fact; pure."""

from memorybus_providers.language.english import SILENT
from memorybus_providers.language.words import parts_of, tokens

ENGLISH = 0.2
"""Share of stop words by which a text is English. Its own are left out: they are half of it, no
question asks for them, and a word like "die" means something where it is not one of them."""


def held_tokens(tags: str, content: str) -> set[str]:
    """Return what an index holds of a fact: its tokens, each once."""
    held = set(tokens(f"{tags} {content}" if tags else content))
    kept = held - SILENT
    return held.union(parts_of(held)) if len(kept) > (1 - ENGLISH) * len(held) else kept
