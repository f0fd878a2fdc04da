"""Decides how memories age; pure.

An active memory becomes stale, and a stale one is archived, if nobody used it for long; one that is
used again is active again. No clock is trusted: a memory is archived only after it was stale for as
long as the two ages differ, and one that a clock ahead of time made stale is judged anew.
"""

from collections.abc import Iterable

import msgspec
from memorybus.config.settings import Settings
from memorybus.events import MemoryState, Scope
from memorybus.text.display import iso


class CuratedMemory(msgspec.Struct, frozen=True):
    """A memory as the curator sees it; times are milliseconds.

    Attributes:
        name: its name within the scope.
        scope: whose it is.
        text: what it says.
        created: when it was said or written.
        state: its state.
        since: since when it has this state; 0 if it never had another.
        used: when it was last recalled; 0 if never.
        successor: the memory that stands for it; "" for none.
        ages: whether the curator decides how it ages; False if its backend does.
        event: id of the event that brought it; "" if unknown.
    """

    name: str
    scope: Scope
    text: str = ""
    created: int = 0
    state: MemoryState = "active"
    since: int = 0
    used: int = 0
    successor: str = ""
    ages: bool = True
    event: str = ""

    @property
    def date(self) -> str:
        """The day on which it was said or written, UTC."""
        return (iso(self.created) or "unknown")[:10]

    @property
    def anchor(self) -> int:
        """The time from which it ages: its last use, or its creation or last revival."""
        return max(self.created, self.used, self.since if self.state == "active" else 0)


class Change(msgspec.Struct, frozen=True):
    """A memory that gets another state, and why.

    Attributes:
        successor: the memory that stands for it from now on; "" for none.
        fact: what the successor says, if it is made now.
        sources: the events that this was said in.
    """

    memory: CuratedMemory
    after: MemoryState
    reason: str
    successor: str = ""
    fact: str = ""
    sources: tuple[str, ...] = ()

    def at(self, now: int) -> int:
        """Return the change's time: later than the memory's last change, whatever the clock."""
        return max(now, self.memory.since + 1)


def transitions(memories: Iterable[CuratedMemory], now: int, settings: Settings) -> list[Change]:
    """Return which memories change their state by age or use, in the order given.

    Args:
        memories: the memories; those that are pinned, have a successor, or are aged by their
            backend stay as they are.
        now: the present time, milliseconds.
        settings: `stale_after` and `archive_after`.
    """
    aged = (_aged(memory, now, settings) for memory in memories if memory.ages)
    return [change for change in aged if change is not None]


def _aged(memory: CuratedMemory, now: int, settings: Settings) -> Change | None:
    stale, archive = (_ms(one) for one in (settings.stale_after, settings.archive_after))
    age = now - memory.anchor
    if memory.state == "active" and age >= stale:
        return Change(memory, "stale", f"not used for {_days(age)}")
    if memory.state in {"stale", "archived"} and not memory.successor:
        if age < stale and (memory.used > memory.since or memory.since > now):
            return Change(memory, "active", "used again" if memory.used else "not old enough")
        if memory.state == "stale" and age >= archive and now - memory.since >= archive - stale:
            return Change(memory, "archived", f"not used for {_days(age)}")
    return None


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _days(age: int) -> str:
    days = age // 86_400_000
    return f"{days} days" if days != 1 else "1 day"
