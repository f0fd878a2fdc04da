"""Lets the facts of the agent's two stores follow its writes, in any database."""

from abc import ABC, abstractmethod

from memorybus_providers.base import HookContext
from memorybus_providers.ranking import facts
from memorybus_providers.ranking.facts import clean
from memorybus_providers.remembering.notes import EndedEntry, Note


class StoreEntries(ABC):
    """Facts that a write of the agent can add, replace or remove."""

    @abstractmethod
    def add(self, note: Note, ctx: HookContext) -> str | None:
        """Keep a note; see `KeepsNotes.add`."""

    @abstractmethod
    def end_entry(
        self, kind: str, old_text: str, successor: str, ctx: HookContext
    ) -> EndedEntry | None:
        """Remove the fact that a text means, and return it; keep what it said as a former entry.

        This is the fact equal to the text, else the only one that contains it; if several contain
        it, none. Facts of the event's own scope come first, then the others of the same store: the
        memory of the agent, whoever talks to it, and the profile of the person, whatever agent
        wrote it.

        Args:
            kind: the kind of the store's entries.
            old_text: what the write names.
            successor: the name of the fact that replaces it, "" for none.
            ctx: the context of the write.
        """

    def replace(
        self, kind: str, old_text: str, content: str, ctx: HookContext
    ) -> EndedEntry | None:
        """Replace the fact that `old_text` means by `content`; return the fact if there is one.

        If it means no fact, the text is added, because the agent believes that it is remembered. If
        `content` is empty, nothing changes.
        """
        text = clean(content)
        if not text or text.isspace():
            return None
        ended = self.end_entry(kind, old_text, facts.name_of_kept(ctx.scope, kind, text), ctx)
        self.add(Note(kind, content), ctx)
        return ended

    def remove(self, kind: str, old_text: str, ctx: HookContext) -> EndedEntry | None:
        """Remove the fact that `old_text` means, and return it if there is one."""
        return self.end_entry(kind, old_text, "", ctx)
