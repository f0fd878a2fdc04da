"""Finds memories that repeat others, and checks what was proposed about them; pure.

Two memories of one owner with the same words say the same. A memory that stands word for word in a
longer one may mean something else there ("allergic to nuts", "not allergic to nuts"), so only a
person decides about it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from memorybus.events import Scope
from memorybus.registry.curation import Repetition

from memorybus_workers.curating.transitions import Change, CuratedMemory

MAX_COMPARED = 2_000
"""The most memories of one owner of which it is asked whether a longer one contains them (G10)."""

LEAST_WORDS = 3
"""A shorter text stands in others by chance."""

MemoryId = tuple[Scope, str]

_PAUSES = re.compile(r"[.,;:!]+(?=\s|$)")


def normalised(text: str) -> str:
    """Return a text without case, spacing, and the signs that only divide it.

    Signs within words, question marks and pictures stay: 3.5 is not 35, C++ is not C.
    """
    return " ".join(_PAUSES.sub(" ", text.casefold()).split())


def find_repetitions(memories: Iterable[CuratedMemory]) -> list[Repetition]:
    """Return the memories that have the words of another one of their owner, which stands for them.

    That is the pinned one, else the one used last, else the oldest.
    """
    alike: dict[tuple[Scope, str], list[CuratedMemory]] = defaultdict(list)
    for memory in _shown(memories):
        alike[memory.scope, normalised(memory.text)].append(memory)
    return [
        _repetition(memory, best, "the same words")
        for group in alike.values()
        for best, *others in [sorted(group, key=_standing)]
        for memory in others
        if memory.state != "pinned"
    ]


def find_contained(memories: Iterable[CuratedMemory]) -> list[Repetition]:
    """Return the memories whose words stand in a row in a longer one of their owner."""
    by_owner: dict[Scope, list[tuple[str, CuratedMemory]]] = defaultdict(list)
    for memory in _shown(memories):
        by_owner[memory.scope].append((f" {normalised(memory.text)} ", memory))
    found = []
    for owned in by_owner.values():
        longest = sorted(owned, key=lambda pair: (-len(pair[0]), pair[1].name))[:MAX_COMPARED]
        for place, (text, memory) in enumerate(longest):
            if memory.state == "pinned" or len(text.split()) < LEAST_WORDS:
                continue
            longer = (one for other, one in longest[:place] if text in other and text != other)
            found += [_repetition(memory, one, "a longer one contains it") for one in longer][:1]
    return found


def accepted(
    proposals: Iterable[Repetition], known: Mapping[MemoryId, CuratedMemory]
) -> list[Change]:
    """Return the changes of proposals that hold for the memories as they are known now.

    A proposal holds if all memories that it names exist, belong to its owner and are in prompts,
    and if the one that goes, and those that it cites, are not pinned and stand for no other.
    """
    standing: set[MemoryId] = set()
    changes = []
    gone: set[MemoryId] = set()
    for proposal in proposals:
        scope = Scope(agent=proposal.agent, user=proposal.user, workspace=proposal.workspace)
        source, target = (scope, proposal.memory), (scope, proposal.successor)
        cited = [known.get((scope, name)) for name in (proposal.memory, *proposal.cited)]
        changing = [each for each in cited if each is not None and _may_go(each)]
        stands = not proposal.successor or bool(proposal.text) or is_shown(known.get(target))
        if (
            len(changing) < len(cited)
            or not stands
            or source == target
            or source in standing | gone
            or target in gone
        ):
            continue
        standing.add(target)
        gone.add(source)
        sources = tuple(sorted({each.event for each in changing} - {""}))
        made = (proposal.text, sources if proposal.text else ())
        changes.append(Change(changing[0], "archived", proposal.reason, proposal.successor, *made))
    return changes


def _may_go(memory: CuratedMemory) -> bool:
    return is_shown(memory) and memory.state != "pinned"


def is_shown(memory: CuratedMemory | None) -> bool:
    """Return whether a memory exists and may be in prompts."""
    return memory is not None and memory.state != "archived"


def _shown(memories: Iterable[CuratedMemory]) -> Sequence[CuratedMemory]:
    return [memory for memory in memories if is_shown(memory) and normalised(memory.text)]


def _standing(memory: CuratedMemory) -> tuple[bool, int, int, str]:
    return memory.state != "pinned", -memory.used, memory.created, memory.name


def _repetition(memory: CuratedMemory, successor: CuratedMemory, reason: str) -> Repetition:
    return Repetition(
        memory=memory.name,
        successor=successor.name,
        agent=memory.scope.agent,
        user=memory.scope.user,
        workspace=memory.scope.workspace,
        reason=f"repeats {successor.name}: {reason}",
    )


def apply_changes(
    known: Mapping[MemoryId, CuratedMemory], changes: Iterable[Change], now: int
) -> dict[MemoryId, CuratedMemory]:
    """Return the memories as they are after some changes."""
    after = dict(known)
    for change in changes:
        memory = change.memory
        after[memory.scope, memory.name] = msgspec.structs.replace(
            memory, state=change.after, since=change.at(now), successor=change.successor
        )
    return after
