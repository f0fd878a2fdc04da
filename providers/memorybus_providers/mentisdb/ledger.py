"""What the marks of a chain say: which thoughts count no more, and which branches there are; pure.

A chain only grows. What was replaced, removed, undone or forgotten stays in it, and a later thought
says that it does not count.
"""

from collections.abc import Iterable, Sequence

import msgspec

from memorybus_providers.mentisdb.thoughts import BRANCH, FORGOTTEN, GONE, MARK, Thought

TAGS = (GONE, BRANCH, FORGOTTEN)
"""What is asked for: thoughts with any of these."""

_TAKE_BACK = frozenset({"Invalidates", "Supersedes"})


def is_memory(thought: Thought) -> bool:
    """Say whether a thought holds what anybody said: no mark, and no beginning of a branch."""
    began = any(edge.kind == "BranchesFrom" for edge in thought.relations)
    return MARK not in thought.tags and not began


class Ledger(msgspec.Struct, frozen=True):
    """What the marks of a chain say.

    Attributes:
        gone: the ids of thoughts that were taken back.
        forgotten: the index up to which nothing counts, -1 for none.
        branches: chains that branch from this one.
    """

    gone: frozenset[str] = frozenset()
    forgotten: int = -1
    branches: tuple[str, ...] = ()

    def counts(self, thought: Thought) -> bool:
        """Say whether a thought of this chain is a memory that holds."""
        return thought.id not in self.gone and self.keeps(thought)

    def keeps(self, thought: Thought) -> bool:
        """Say whether a thought of this chain is a memory at all, if only a former one."""
        return thought.index > self.forgotten and is_memory(thought)

    def standing(self, thoughts: Iterable[Thought]) -> list[Thought]:
        """Return those that count."""
        return [one for one in thoughts if self.counts(one)]


def read(marks: Sequence[Thought]) -> Ledger:
    """Return what marks say."""
    taken = (edge for one in marks if GONE in one.tags for edge in one.relations)
    return Ledger(
        frozenset(edge.target_id for edge in taken if edge.kind in _TAKE_BACK),
        max((one.index for one in marks if FORGOTTEN in one.tags), default=-1),
        tuple(dict.fromkeys(one.content for one in marks if BRANCH in one.tags)),
    )
