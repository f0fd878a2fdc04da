"""The interfaces that every store of facts implements for use within a transaction."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from memorybus.events import Derived, MemoryState, Scope

from memorybus_providers.base import HookContext
from memorybus_providers.deriving.deriver import Due
from memorybus_providers.ranking.succession import Correction
from memorybus_providers.remembering.notes import EndedEntry, Note
from memorybus_providers.remembering.utterances import Utterance


class KeepsUtterances(Protocol):
    """Facts that were said, in the order of their session, so recall finds their neighbours."""

    def append(self, utterances: Iterable[Utterance], ctx: HookContext) -> None:
        """Append an event's utterances to its session, verbatim; blank ones are skipped."""
        ...

    def append_unsaid(self, utterances: Iterable[Utterance], ctx: HookContext) -> None:
        """Append the utterances that the lineage does not have: a compression repeats turns."""
        ...

    def forget_name(self, name: str, ctx: HookContext) -> None:
        """Delete what was said under a name (see `ranking.facts`)."""
        ...

    def add_speaker(self, name: str, ctx: HookContext) -> None:
        """Remember that somebody of this name speaks in this scope."""
        ...

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget what was said in some events of the context's lineage.

        A compression in the middle of such a turn has brought its beginning, too.
        """
        ...


class KeepsNotes(Protocol):
    """Facts that somebody chose to keep."""

    def add(self, note: Note, ctx: HookContext) -> str | None:
        """Keep a note verbatim; return its name, or None if it is blank.

        Of several events with the same note the earliest counts (G8).
        """
        ...

    def replace(
        self, kind: str, old_text: str, content: str, ctx: HookContext
    ) -> EndedEntry | None:
        """Replace the fact that `old_text` means by `content`; add it if none is meant."""
        ...

    def remove(self, kind: str, old_text: str, ctx: HookContext) -> EndedEntry | None:
        """Remove the fact that `old_text` means: the equal one, else the only one with it."""
        ...

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget the notes that only these events of the context's lineage have said."""
        ...

    def forget_name(self, name: str, ctx: HookContext) -> None:
        """Delete the note of a name, unless it was said again later than ``ctx.at``."""
        ...


class KeepsCorrections(Protocol):
    """Corrections that were made by the tool."""

    def add(self, fact: str, old: str, note: str, ctx: HookContext) -> Correction:
        """Correct a fact by a note; the fact is known by its name, or by a text in it."""
        ...

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget corrections that were made in some events of the context's lineage."""
        ...


class KeepsJudgements(Protocol):
    """Feedback on facts; it may come before the fact itself."""

    def add(self, fact: str, ctx: HookContext, *, helpful: bool) -> float | None:
        """Judge the fact of this name in the context's scope; return its trust, if it exists."""
        ...


class KeepsCurations(Protocol):
    """What the curator and people made of facts; it may come before the fact itself."""

    def set(self, fact: str, state: MemoryState, successor: str, ctx: HookContext) -> bool:
        """Give a fact of the context's scope a state; return False if a later one is known."""
        ...

    def forget(self, fact: str, ctx: HookContext) -> None:
        """Remember that a fact is forgotten, as far as it was said until ``ctx.at``."""
        ...


class KeepsResults(Protocol):
    """Results of writing tools, so that a repeated call changes nothing."""

    def get(self, event_id: str) -> str | None:
        """Return the result of a call that was run before."""
        ...

    def put(self, event_id: str, result: str) -> None:
        """Remember a result; the oldest beyond `RESULTS_KEPT` are forgotten."""
        ...


class KeepsDerivations(Protocol):
    """Conclusions from what was said, and the sessions that wait for a deriver."""

    def add(self, event: Derived, ctx: HookContext) -> bool:
        """Keep a conclusion; return False if it is kept already, or was retracted."""
        ...

    def texts(self, event_ids: Sequence[str], ctx: HookContext) -> list[str]:
        """Return what conclusions of the context's scope say."""
        ...

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> list[str]:
        """Forget some events and what came from them, now or later; return the conclusions' ids."""
        ...

    def retract_entry(self, entry: EndedEntry) -> list[str]:
        """Forget what came from an entry of a store that was removed; return the ids."""
        ...

    def retracted(self, scope: Scope) -> frozenset[str]:
        """Return the events of a scope from which nothing may be concluded any more."""
        ...

    def note_due(self, derivers: Sequence[str], ctx: HookContext) -> None:
        """Note that the context's event made its session due, unless that was derived already."""
        ...

    def due(self, deriver: str, most: int) -> list[Due]:
        """Return sessions that are due for a deriver, those that wait longest first."""
        ...

    def settle(self, deriver: str, done: Iterable[Due]) -> None:
        """Forget that these were due for a deriver."""
        ...


class Parts(Protocol):
    """All these interfaces, within one open transaction."""

    @property
    def utterances(self) -> KeepsUtterances:
        """What was said."""
        ...

    @property
    def notes(self) -> KeepsNotes:
        """What was kept."""
        ...

    @property
    def corrections(self) -> KeepsCorrections: ...

    @property
    def derivations(self) -> KeepsDerivations:
        """What was concluded."""
        ...

    @property
    def curations(self) -> KeepsCurations: ...

    @property
    def judgements(self) -> KeepsJudgements:
        """What was judged."""
        ...

    @property
    def results(self) -> KeepsResults:
        """What tools returned."""
        ...


RESULTS_KEPT = 10_000  # the most results of writing tools that a store remembers (G10)
