"""What a command answers: a typed value, and what people see of it beside its fields.

A field's annotation says how it is shown: ``size: Annotated[int, Column(unit="bytes")]``. The
presenter in `views` shows any such value; this module knows neither a terminal nor a page.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

import msgspec

if TYPE_CHECKING:
    from rich.console import RenderableType

T = TypeVar("T")

Unit = Literal["", "bytes", "milliseconds", "seconds", "rate", "share", "time"]
"""How a number is shown; ``time`` is a wall time in milliseconds, or ISO 8601."""

Style = Literal["", "bold", "dim", "green", "magenta", "red", "yellow"]


@dataclass(frozen=True)
class Column:
    """How a field is shown."""

    title: str = ""  # its head in a table or a block; by default the field's name
    unit: Unit = ""
    hidden: bool = False  # whether only `--json` has it
    wraps: bool = False  # whether it is running text, which a narrow terminal may wrap
    style: Style = ""  # its colour, if it is neither 0 nor empty
    words: tuple[str, str] = ("no", "yes")  # what stands for false and for true
    most: int = 0  # the most characters that are shown; 0 for all


HIDDEN = Column(hidden=True)
TEXT = Column(wraps=True)
TIME = Column(unit="time")
BYTES = Column(unit="bytes")


@dataclass(frozen=True)
class IfEmpty:
    """The note that stands for an empty list, as an annotation of a command's return type."""

    text: str


@dataclass(frozen=True)
class Prints:
    """What a command prints with ``--json``, if it shows that itself and returns its exit code."""

    kind: Any


class Remark(NamedTuple):
    """A remark below a result: a consequence, a problem, or the next command."""

    text: str
    style: Style = "dim"


@dataclass(frozen=True)
class Presentation(Generic[T]):
    """A value whose fields alone do not show people what it means."""

    value: T  # what `--json` prints
    parts: "Iterable[RenderableType]"  # what people see in its place; made only if people look
    notes: "Iterable[Remark]" = ()
    code: int = 0


@dataclass(frozen=True)
class Stepwise(Generic[T]):
    """A value that takes a while: people see each part of it as soon as that is known.

    Attributes:
        parts: yields what people see, and returns the value with the rest of what they see.
    """

    parts: "Generator[RenderableType, None, Presentation[T]]"


def unread_notes(unread: Iterable[str]) -> Iterator[Remark]:
    """Yield which parts of the past could not be read; the rest is shown."""
    for why in unread:
        yield Remark(f"a part of the past is left out: {why}", "yellow")


class Result(msgspec.Struct, frozen=True):
    """A value with a sentence that sums it up, and remarks."""

    def headline(self) -> str:
        """Return the sentence that stands for the fields; "" if there is none."""
        return ""

    def facts(self) -> Mapping[str, str]:
        """Return lines that stand for the fields, by title."""
        return {}

    def notes(self) -> Iterator[Remark]:
        """Yield the remarks."""
        yield from ()

    def sentences(self) -> list[str]:
        """Return the sentence that stands for the fields, and the remarks."""
        return [self.headline(), *(note.text for note in self.notes())]

    def failed(self) -> bool:
        """Return whether the command ends with exit code 1."""
        return False

    def is_plan(self) -> bool:
        """Return whether it only states what would be done."""
        return False
