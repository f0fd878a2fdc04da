"""How the facts of the agent's two stores follow its writes, whatever database holds them."""

from abc import ABC, abstractmethod

from memorybus_providers.base import HookContext
from memorybus_providers.ranking import facts
from memorybus_providers.ranking.facts import clean
from memorybus_providers.remembering.notes import Note


class StoreEntries(ABC):
    """Facts of which a write may put one in the place of another, or remove it."""

    @abstractmethod
    def add(self, note: Note, ctx: HookContext) -> str | None:
        """Keep a note; see `KeepsNotes.add`."""

    @abstractmethod
    def end_entry(self, kind: str, old_text: str, successor: str, ctx: HookContext) -> None:
        """Remove the fact that a text means, if there is one; keep what it said as a former entry.

        That is the fact equal to it, else the only one that contains it; of several none. Facts
        of the event's own scope come first, then the others of the same store: the memory of the
        agent, whoever talks to it, and the profile of the person, whatever agent wrote it.

        Args:
            kind: the store's.
            old_text: what the write names.
            successor: the name of the fact that takes its place, "" for none.
            ctx: the write's.
        """

    def replace(self, kind: str, old_text: str, content: str, ctx: HookContext) -> None:
        """Put `content` in the place of the fact that `old_text` means.

        Where it means none the text is added, for the agent believes it remembered. Without a
        text nothing changes.
        """
        text = clean(content)
        if text and not text.isspace():
            self.end_entry(kind, old_text, facts.name_of_kept(ctx.scope, kind, text), ctx)
            self.add(Note(kind, content), ctx)

    def remove(self, kind: str, old_text: str, ctx: HookContext) -> None:
        """Remove the fact that `old_text` means, if there is one."""
        self.end_entry(kind, old_text, "", ctx)
