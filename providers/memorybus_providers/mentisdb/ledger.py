"""The marks of a chain: which thoughts count no more, and which branches there are; pure.

A chain only grows. What was replaced, removed, undone or forgotten stays in it, and a later thought
marks it as no longer valid.
"""

from collections.abc import Iterable, Sequence

import msgspec

from memorybus_providers.mentisdb.thoughts import BRANCH, FORGOTTEN, GONE, MARK, Thought

TAGS = (GONE, BRANCH, FORGOTTEN)
"""Thoughts with any of these tags are the marks that a ledger is read from."""

_TAKE_BACK = frozenset({"Invalidates", "Supersedes"})


def is_memory(thought: Thought) -> bool:
    """Say whether a thought holds something that was said: no mark, no beginning of a branch."""
    began = any(edge.kind == "BranchesFrom" for edge in thought.relations)
    return MARK not in thought.tags and not began


class MentisLedger(msgspec.Struct, frozen=True):
    """The marks of a chain, read.

    Attributes:
        gone: the ids of thoughts that were replaced, removed or retracted.
        forgotten: the index up to which nothing counts any more; -1 if all counts.
        branches: the chains that branch from this one.
    """

    gone: frozenset[str] = frozenset()
    forgotten: int = -1
    branches: tuple[str, ...] = ()

    def is_current(self, thought: Thought) -> bool:
        """Say whether a thought of this chain is a memory that still counts."""
        return thought.id not in self.gone and self.is_kept(thought)

    def is_kept(self, thought: Thought) -> bool:
        """Say whether a thought of this chain is a memory, current or former, and not forgotten."""
        return thought.index > self.forgotten and is_memory(thought)

    def current_thoughts(self, thoughts: Iterable[Thought]) -> list[Thought]:
        """Return the thoughts that still count."""
        return [one for one in thoughts if self.is_current(one)]


def read_marks(marks: Sequence[Thought]) -> MentisLedger:
    """Return the ledger that marks make up."""
    taken = (edge for one in marks if GONE in one.tags for edge in one.relations)
    return MentisLedger(
        frozenset(edge.target_id for edge in taken if edge.kind in _TAKE_BACK),
        max((one.index for one in marks if FORGOTTEN in one.tags), default=-1),
        tuple(dict.fromkeys(one.content for one in marks if BRANCH in one.tags)),
    )
