"""Reads from the marks of a chain which thoughts are valid and which branches it has; pure.

A chain only grows. A thought that was replaced, removed, undone or forgotten stays in it, and a
later thought, the mark, says that it is no longer valid.
"""

from collections.abc import Iterable, Sequence

import msgspec

from memorybus_providers.mentisdb.thoughts import BRANCH, FORGOTTEN, GONE, MARK, Thought

TAGS = (GONE, BRANCH, FORGOTTEN)
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
        forgotten: the index up to which all thoughts are forgotten; -1 if none is.
        branches: the chains that branch from this one.
    """

    gone: frozenset[str] = frozenset()
    forgotten: int = -1
    branches: tuple[str, ...] = ()

    def is_current(self, thought: Thought) -> bool:
        """Say whether a thought of this chain is a memory that is still valid."""
        return thought.id not in self.gone and self.is_kept(thought)

    def is_kept(self, thought: Thought) -> bool:
        """Say whether a thought of this chain is a memory, current or former, and not forgotten."""
        return thought.index > self.forgotten and is_memory(thought)

    def current_thoughts(self, thoughts: Iterable[Thought]) -> list[Thought]:
        """Return the thoughts that are still valid."""
        return [one for one in thoughts if self.is_current(one)]


def read_marks(marks: Sequence[Thought]) -> MentisLedger:
    """Return the ledger for the marks of a chain."""
    taken = (edge for one in marks if GONE in one.tags for edge in one.relations)
    return MentisLedger(
        frozenset(edge.target_id for edge in taken if edge.kind in _TAKE_BACK),
        max((one.index for one in marks if FORGOTTEN in one.tags), default=-1),
        tuple(dict.fromkeys(one.content for one in marks if BRANCH in one.tags)),
    )
