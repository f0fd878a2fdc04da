"""The types into which every transcript format is parsed."""

import msgspec

from memorybus.events import Message
from memorybus.operations.ingest.refused import UnreadableInput


class TranscriptError(UnreadableInput):
    """A file is not a conversation we can read; the place is ``file:line``."""


class RecordedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange. Either side may be empty, but not both.

    Attributes:
        user: what the person said, verbatim.
        assistant: what the agent said, verbatim.
        messages: the turn's messages with all their fields; empty if the two sides say everything.
        user_name: the person's name, if the file gives it.
        assistant_name: the agent's name, if the file gives it.
        at: when it was said, milliseconds; None if the file does not say.
        source_id: the file's own id of the message that begins the turn; "" if it has none.
    """

    user: str = ""
    assistant: str = ""
    messages: tuple[Message, ...] = ()
    user_name: str = ""
    assistant_name: str = ""
    at: int | None = None
    source_id: str = ""


class RecordedSession(msgspec.Struct, frozen=True, kw_only=True):
    """The turns of one session.

    Attributes:
        session: the session's id.
        named: whether the file names the session; else its id is made of the file's name.
        turns: the turns in the order of the file; the index is the turn's ordinal.
        after: the session that this one continues; empty for the first of a lineage.
        user: the person who talks; empty if the file does not say.
        at: when the session began, milliseconds; None if the file does not say.
        title: a name for people.
    """

    session: str
    named: bool
    turns: tuple[RecordedTurn, ...]
    after: str = ""
    user: str = ""
    at: int | None = None
    title: str = ""


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed file.

    Attributes:
        conversations: the sessions in the order of the file; one that continues another comes
            after it.
        skipped: how many messages were left out because they have no content.
    """

    conversations: tuple[RecordedSession, ...]
    skipped: int = 0

    @property
    def turns(self) -> int:
        """How many turns the file holds."""
        return sum(len(conversation.turns) for conversation in self.conversations)
