"""What an ingest reports: its stages, what it did, what it left out, and what it refused."""

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, Self

import msgspec
from memorybus.errors import MemoryBusError


class UnreadableInput(MemoryBusError):
    """An input, or a part of it, is not as its format says.

    Attributes:
        why: the reason.
        place: where it is, such as ``file:line``; "" if whoever reads the input knows that.
    """

    def __init__(self, why: str, place: str = "") -> None:
        super().__init__(f"{place}: {why}" if place else why)
        self.why = why
        self.place = place


class RefusedInput(msgspec.Struct, frozen=True):
    """Something that was not published, and why.

    Attributes:
        what: the file, address, record, session or turn.
        why: the reason; it begins with the place, if there is one.
        place: where in it the reason lies, such as ``file:line``; "" if the reason concerns all of
            it.
    """

    what: str
    why: str
    place: str = ""

    @classmethod
    def unreadable(cls, what: str, error: UnreadableInput) -> Self:
        """Return the refusal of an input that cannot be read."""
        return cls(what, str(error), error.place)

    def describe(self) -> str:
        """Return what was refused and why, as people read it."""
        return self.why if self.place else f"{self.what}: {self.why}"


MAX_NAMED = 100
"""How many unreadable lines of a source are named; further ones are only counted (G10)."""


class LeftOut(msgspec.Struct):
    """What a reader left out.

    Attributes:
        unread: how many lines and records cannot be read.
        named: the first of them, each with its place and the reason.
        dropped: how often something is dropped, by its kind: reasoning, pictures, relations and
            times that are none.
    """

    unread: int = 0
    named: list[RefusedInput] = []
    dropped: dict[str, int] = {}

    def refuse(self, refusal: RefusedInput) -> None:
        """Note a line or a record that cannot be read."""
        self.unread += 1
        if len(self.named) < MAX_NAMED:
            self.named.append(refusal)

    def drop(self, kind: str, count: int = 1) -> None:
        """Note that `count` more of a kind are dropped."""
        if count:
            self.dropped[kind] = self.dropped.get(kind, 0) + count


class StageStep(Protocol):
    """Is called while a stage makes progress."""

    def __call__(self, count: int = 1, /) -> None:
        """Note that `count` more are done."""


class OnStage(Protocol):
    """Is called when a stage begins; the stage lasts as long as the block that it returns."""

    def __call__(
        self, what: str, unit: str, total: int | None
    ) -> AbstractContextManager[StageStep]:
        """Begin a stage.

        Args:
            what: what is done.
            unit: what is counted.
            total: how many there are; None if that is unknown.
        """
        ...


class IngestReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an ingest did; its ``--json``.

    Attributes:
        files: how many files were read completely.
        sessions: how many sessions they hold.
        turns: how many turns the files hold, without the refused ones.
        known: how many of these the history had already, under whatever name and number.
        replaced: how many of these are a newer form of a turn that the history had: it takes the
            place of the older one.
        events: how many events were read from files of events, including those that the log had.
        skipped: how many messages were left out because they have no content.
        unread: how many lines and records could not be read; the first 100 of each file are among
            `refused`, each with its place and the reason.
        dropped: how often something was dropped, by its kind: reasoning, pictures, relations.
        new_events: by how many events the log grew meanwhile; None if Redis did not answer.
        level: ``logged`` if Redis has everything, else ``spooled``; None if nothing was published.
        refused: files and turns that were not published, and why.
        refused_turns: how many turns, or events of a file of events, were not published.
    """

    files: int = 0
    sessions: int = 0
    turns: int = 0
    known: int = 0
    replaced: int = 0
    events: int = 0
    skipped: int = 0
    unread: int = 0
    dropped: dict[str, int] = {}
    new_events: int | None = None
    level: Literal["logged", "spooled"] | None = None
    refused: tuple[RefusedInput, ...] = ()
    refused_turns: int = 0


def sum_reports(reports: Sequence[IngestReport]) -> IngestReport:
    """Return the report of several sources; it is ``spooled`` as soon as one of them is."""
    levels = {one.level for one in reports}
    return IngestReport(
        files=sum(one.files for one in reports),
        sessions=sum(one.sessions for one in reports),
        turns=sum(one.turns for one in reports),
        known=sum(one.known for one in reports),
        replaced=sum(one.replaced for one in reports),
        events=sum(one.events for one in reports),
        skipped=sum(one.skipped for one in reports),
        unread=sum(one.unread for one in reports),
        dropped=dict(sum((Counter(one.dropped) for one in reports), Counter())),
        level="spooled" if "spooled" in levels else "logged" if "logged" in levels else None,
        refused=tuple(refusal for one in reports for refusal in one.refused),
        refused_turns=sum(one.refused_turns for one in reports),
    )
