"""What an ingest reports: its stages, what it did, what it left out, and what it refused."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, Self

import msgspec
from memorybus.errors import MemoryBusError
from memorybus.text.display import count_text

from memorybus_console.result import Remark, Result


class UnreadableInput(MemoryBusError):
    """An input, or a part of it, is not as its format says.

    Attributes:
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
        return cls(what, str(error), error.place)

    def describe(self) -> str:
        return self.why if self.place else f"{self.what}: {self.why}"


MAX_NAMED = 100
"""How many unreadable lines of a source are named; further ones are only counted (G10)."""


class LeftOut(msgspec.Struct):
    """What a reader left out.

    Attributes:
        dropped: how often something is dropped, by its kind: reasoning, pictures, relations and
            times that are none.
    """

    unread: int = 0  # how many lines and records cannot be read
    named: list[RefusedInput] = []  # the first of them, each with its place and the reason
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
            total: how many there are; None if that is unknown.
        """
        ...


class IngestReport(Result, frozen=True, kw_only=True):
    """What an ingest did; its ``--json``.

    Attributes:
        formats: how many of these are of each format, by its name: ``ChatGPT``, ``Codex``.
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
    formats: dict[str, int] = msgspec.field(default_factory=dict)
    sessions: int = 0
    turns: int = 0
    known: int = 0
    replaced: int = 0
    events: int = 0
    skipped: int = 0
    unread: int = 0
    dropped: dict[str, int] = msgspec.field(default_factory=dict)
    new_events: int | None = None
    level: Literal["logged", "spooled"] | None = None
    refused: tuple[RefusedInput, ...] = ()
    refused_turns: int = 0

    def headline(self) -> str:
        lines = [self._imported()]
        if self.skipped:
            lines.append(f"{count_text(self.skipped, 'message')} without content left out")
        if self.unread:
            what = "line or record" if self.unread == 1 else "lines or records"
            lines.append(f"{self.unread} {what} could not be read")
        lines += [f"dropped: {count} {kind}" for kind, count in self.dropped.items()]
        return "\n".join(lines)

    def _imported(self) -> str:
        formats = ", ".join(name for name, count in self.formats.items() if count)
        files = count_text(self.files, "file") + (f" ({formats})" if formats else "")
        read = _counted(session=self.sessions, turn=self.turns, event=self.events) or "nothing"
        turns = {"known already": self.known, "in a newer form": self.replaced}
        news = [f"{count_text(count, 'turn')} {what}" for what, count in turns.items() if count]
        if self.new_events is not None:
            new = _counted(new_event=self.new_events)
            news.append(new or "nothing new in the log")
        return f"imported {read} from {files}" + (f": {', '.join(news)}" if news else "")

    def notes(self) -> Iterator[Remark]:
        yield from (Remark(refusal.describe(), "red") for refusal in self.refused)
        if self.level == "spooled":
            yield Remark(
                "Redis has not taken the events: they are spooled on this disk and will be sent by "
                "the next `memorybus up` or agent",
                "yellow",
            )

    def failed(self) -> bool:
        return bool(self.refused)


def _counted(**counts: int) -> str:
    nouns = ((name.replace("_", " "), count) for name, count in counts.items())
    return ", ".join(count_text(count, noun) for noun, count in nouns if count)


def sum_reports(reports: Sequence[IngestReport]) -> IngestReport:
    """Return the report of several sources; it is ``spooled`` as soon as one of them is."""
    levels = {report.level for report in reports}
    counts = (
        "files", "sessions", "turns", "known", "replaced", "events", "skipped", "unread",
        "refused_turns",
    )  # fmt: skip
    return IngestReport(
        **{name: sum(getattr(report, name) for report in reports) for name in counts},
        formats=dict(sum((Counter(report.formats) for report in reports), Counter())),
        dropped=dict(sum((Counter(report.dropped) for report in reports), Counter())),
        level="spooled" if "spooled" in levels else "logged" if "logged" in levels else None,
        refused=tuple(refusal for report in reports for refusal in report.refused),
    )
