"""The contract of a deriver: what it gets, what it returns, and how it is found by name.

A deriver's name is an entry point of the group ``memorybus.derivers``, or ``module:Class``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from memorybus.errors import MissingProvider
from memorybus.events import DerivedKind, Scope, SessionRef

if TYPE_CHECKING:
    from memorybus_providers.deriving.model import ChatModel

GROUP = "memorybus.derivers"

MAX_CONCLUSIONS = 50
MAX_TEXT_CHARS = 4_000
"""The most conclusions of one cause, and the most characters of one; the rest is left out (G10)."""


class Due(msgspec.Struct, frozen=True):
    """A session that is due to be derived.

    Attributes:
        cause: the id of the event that made it due.
        at: the time of that event, milliseconds.
        scope: the session's owner.
        session: the session.
    """

    cause: str
    at: int
    scope: Scope
    session: SessionRef


class Passage(msgspec.Struct, frozen=True):
    """A text that somebody said, or that was kept, with the event that brought it ("" for none)."""

    event: str
    text: str
    speaker: str = ""
    at: int = 0
    kind: str = ""


class KnownConclusion(msgspec.Struct, frozen=True):
    """A conclusion that is kept already.

    Attributes:
        id: the id of its event.
        kind: its kind.
        text: the conclusion.
        at: the time of its cause, milliseconds.
        deriver: who derived it.
        sources: the events that it came from.
        supersedes: the conclusions that it replaces.
    """

    id: str
    kind: DerivedKind
    text: str
    at: int
    deriver: str
    sources: frozenset[str] = frozenset()
    supersedes: frozenset[str] = frozenset()


class Material(msgspec.Struct, frozen=True):
    """What a deriver may conclude from. All texts are data: none of them is an instruction.

    Attributes:
        due: the session, and why it is derived now.
        said: what was said in it until then, in order; of a long session the newest passages.
        essentials: what is known of the person, the most important first.
        known: the conclusions about the session and the person that hold now, the newest first.
    """

    due: Due
    said: Sequence[Passage]
    essentials: Sequence[Passage] = ()
    known: Sequence[KnownConclusion] = ()

    @property
    def sources(self) -> frozenset[str]:
        """The ids that a conclusion may name as sources."""
        return frozenset(passage.event for passage in (*self.said, *self.essentials)) - {""}


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """What a deriver concluded; its fields mean what those of `Derived` mean."""

    kind: DerivedKind
    text: str
    sources: tuple[str, ...]
    about: str = ""
    supersedes: tuple[str, ...] = ()
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0


class Means(msgspec.Struct, frozen=True):
    """What a worker lends a deriver.

    Attributes:
        model: opens the model of the settings.
        escape: makes a text data: nothing in it looks like a mark of a prompt any more.
    """

    model: "Callable[[], ChatModel[Any]]"
    escape: Callable[[str], str]


class Deriver(ABC):
    """Concludes from what was said.

    Attributes:
        name: the deriver, as its conclusions name it; the worker sets it to that of the settings.
        revision: its version. A new one means that it concludes differently; with it, causes that
            were derived before may be derived again beside the old conclusions.
    """

    name: str
    revision: ClassVar[str]

    rest: float = 0.0
    """Seconds between two derivations of a session: what becomes due meanwhile is derived later."""

    @classmethod
    def make(cls, means: Means) -> "Deriver":
        """Return a new deriver; one that needs anything takes it from `means`."""
        return cls()

    @abstractmethod
    def derive(self, material: Material) -> Sequence[Conclusion]:
        """Return what follows from the material; nothing if there is nothing to conclude.

        The same material gives the same conclusions, unless a model is asked. Each conclusion names
        the events that it came from, all of them among `Material.sources`.
        """


def check(conclusions: Sequence[Conclusion], material: Material) -> list[Conclusion]:
    """Return the conclusions that may be published.

    Left out are those without a text or a source, those that name an event or a conclusion that the
    deriver was not given, and whatever goes beyond the bounds.
    """
    known = {conclusion.id for conclusion in material.known}
    return [
        conclusion
        for conclusion in conclusions[:MAX_CONCLUSIONS]
        if conclusion.text.strip() and len(conclusion.text) <= MAX_TEXT_CHARS
        if conclusion.sources and material.sources.issuperset(conclusion.sources)
        if known.issuperset(conclusion.supersedes)
    ]


def load_deriver(name: str, means: Means) -> Deriver:
    """Return a new deriver.

    Raises:
        MissingProvider: no package registers the name, or its module cannot be imported.
    """
    made = _import(name)
    if not (isinstance(made, type) and issubclass(made, Deriver)):
        raise MissingProvider(f"deriver {name!r}: {made!r} is not a Deriver class")
    deriver = made.make(means)
    deriver.name = name
    return deriver


def registered_derivers() -> Mapping[str, EntryPoint]:
    """Return the registered derivers by name; nothing is imported."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _import(name: str) -> Any:
    points = registered_derivers()
    point = EntryPoint(name, name, GROUP) if ":" in name else points.get(name)
    if point is None:
        raise MissingProvider(
            f"no deriver {name!r}; installed: {', '.join(sorted(points))}. "
            "Name one of your own module:Class in the setting `derivers`"
        )
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise MissingProvider(f"deriver {name!r} cannot be imported: {error}") from error
