"""What every store of facts does in a transaction; the classes of each store are such."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from memorybus_providers.base import HookContext
from memorybus_providers.remembering.notes import Note
from memorybus_providers.remembering.utterances import Utterance
from memorybus_providers.truth.changes import Correction


class KeepsUtterances(Protocol):
    """Facts that were said: they keep their session's order, so that recall looks around them."""

    def append(self, utterances: Iterable[Utterance], ctx: HookContext) -> None:
        """Append an event's utterances to its session, verbatim; a blank one says nothing."""
        ...

    def append_unsaid(self, utterances: Iterable[Utterance], ctx: HookContext) -> None:
        """Append what the lineage has not stored yet: a compression repeats its turns."""
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
        """Keep a note as it stands; return its name, None if it is blank.

        Of several events with the same note the earliest counts (G8).
        """
        ...

    def replace(self, kind: str, old_text: str, content: str, ctx: HookContext) -> None:
        """Put `content` in the place of the fact that `old_text` means; add it if none is meant."""
        ...

    def remove(self, kind: str, old_text: str, ctx: HookContext) -> None:
        """Remove the fact that `old_text` means: one equal to it, else the only one with it."""
        ...

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget the notes that only these events of the context's lineage have said."""
        ...


class KeepsCorrections(Protocol):
    """What was put right by tool."""

    def add(self, fact: str, old: str, note: str, ctx: HookContext) -> Correction:
        """Correct a fact, known by its name or else by a text that it holds, with a note."""
        ...

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget corrections that were made in some events of the context's lineage."""
        ...


class KeepsJudgements(Protocol):
    """Feedback on facts, which may come before its fact."""

    def add(self, fact: str, ctx: HookContext, *, helpful: bool) -> float | None:
        """Judge the fact of this name in the context's scope; return its trust, if it exists."""
        ...


class KeepsResults(Protocol):
    """Results of writing tools, so that a repeated call changes nothing."""

    def get(self, event_id: str) -> str | None:
        """Return the result of a call that was run before."""
        ...

    def put(self, event_id: str, result: str) -> None:
        """Remember a result; the oldest beyond `RESULTS_KEPT` are forgotten."""
        ...


class Parts(Protocol):
    """All of these, within one open transaction."""

    @property
    def utterances(self) -> KeepsUtterances:
        """What was said."""
        ...

    @property
    def notes(self) -> KeepsNotes:
        """What was kept."""
        ...

    @property
    def corrections(self) -> KeepsCorrections:
        """What was put right."""
        ...

    @property
    def judgements(self) -> KeepsJudgements:
        """What was judged."""
        ...

    @property
    def results(self) -> KeepsResults:
        """What tools returned."""
        ...


RESULTS_KEPT = 10_000
"""Results of writing tools that a store remembers (G10)."""
