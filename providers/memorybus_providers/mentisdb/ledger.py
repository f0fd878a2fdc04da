"""Reads from the marks of a chain which thoughts are valid and which branches it has; pure.

A chain only grows. A thought that was replaced, removed or undone stays in it, and a later thought,
the mark, records that it is no longer valid.
"""

from collections.abc import Iterable, Sequence

import msgspec

from memorybus_providers.mentisdb.thoughts import BRANCH, GONE, MARK, Thought

TAGS = (GONE, BRANCH)
"""A ledger is read from the thoughts with one of these tags."""

_TAKE_BACK = frozenset({"Invalidates", "Supersedes"})


def is_memory(thought: Thought) -> bool:
    """Say whether a thought is a memory: neither a mark nor the beginning of a branch."""
    began = any(edge.kind == "BranchesFrom" for edge in thought.relations)
    return MARK not in thought.tags and not began


class MentisLedger(msgspec.Struct, frozen=True):
    """What the marks of a chain say.

    Attributes:
        gone: the ids of thoughts that were replaced, removed or retracted.
        branches: the chains that branch from this one.
    """

    gone: frozenset[str] = frozenset()
    branches: tuple[str, ...] = ()

    def is_current(self, thought: Thought) -> bool:
        """Say whether a thought of this chain is a memory that is still valid."""
        return thought.id not in self.gone and is_memory(thought)

    def current_thoughts(self, thoughts: Iterable[Thought]) -> list[Thought]:
        """Return the thoughts that are still valid."""
        return [one for one in thoughts if self.is_current(one)]


def read_marks(marks: Sequence[Thought]) -> MentisLedger:
    """Return the ledger for the marks of a chain."""
    taken = (edge for one in marks if GONE in one.tags for edge in one.relations)
    return MentisLedger(
        frozenset(edge.target_id for edge in taken if edge.kind in _TAKE_BACK),
        tuple(dict.fromkeys(one.content for one in marks if BRANCH in one.tags)),
    )
