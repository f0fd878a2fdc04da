"""The types into which every transcript format is parsed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo

import msgspec
from memorybus.events import Message
from memorybus.text.bounding import fit_messages

from memorybus_console.operations.ingest.report import LeftOut, UnreadableInput

_OVERHEAD_BYTES = 4_096  # bytes of an event that are neither texts nor messages


class TranscriptError(UnreadableInput):
    """A file is not a conversation we can read; the place is ``file:line``."""


class ReadingOptions(msgspec.Struct, frozen=True):
    """What the settings say of files.

    Attributes:
        event_max_bytes: the size of the largest event: what else a turn's messages hold is cut
            until they fit.
    """

    zone: tzinfo = UTC  # the zone of times that name none
    event_max_bytes: int = 1 << 20

    def fitting(
        self, messages: Sequence[Message], texts: str, left_out: LeftOut
    ) -> tuple[Message, ...]:
        """Return the messages of a turn in the room that its texts leave in an event."""
        room = self.event_max_bytes - _OVERHEAD_BYTES - len(texts.encode("utf-8", "replace"))
        kept = fit_messages(messages, room, max(room, 0))
        left_out.drop("messages beside their texts", 0 if kept else len(messages))
        return kept


class RecordedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange. Either side may be empty, but not both.

    Attributes:
        messages: the turn's messages with all their fields; empty if the two sides say everything.
        source_id: the id that the source gives the turn's first message; "" if it gives none that
            no other turn of the session has.
    """

    user: str = ""  # what the person said, verbatim
    assistant: str = ""  # what the agent said, verbatim
    messages: tuple[Message, ...] = ()
    user_name: str = ""
    assistant_name: str = ""  # the agent's name, if the file gives it
    at: int | None = None  # when it was said, milliseconds; None if the file does not say
    source_id: str = ""


class RecordedSession(msgspec.Struct, frozen=True, kw_only=True):
    """The turns of one session.

    Attributes:
        turns: the turns in the order of the file; the index is the turn's ordinal.
    """

    session: str
    named: bool  # whether the file names the session; else its id is made of the file's name
    turns: tuple[RecordedTurn, ...]
    after: str = ""  # the session that this one continues; empty for the first of a lineage
    user: str = ""  # the person who talks; empty if the file does not say
    at: int | None = None  # when the session began, milliseconds; None if the file does not say
    title: str = ""


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed file.

    Attributes:
        conversations: the sessions in the order of the file; one that continues another comes
            after it.
        left_out: the lines that cannot be read, and what is dropped of the others.
        formats: how it is written: the names of `transcripts.FORMATS`, several for an archive.
    """

    conversations: tuple[RecordedSession, ...]
    skipped: int = 0  # how many messages were left out because they have no content
    left_out: LeftOut = msgspec.field(default_factory=LeftOut)
    formats: tuple[str, ...] = ()

    @property
    def turns(self) -> int:
        return sum(len(conversation.turns) for conversation in self.conversations)


def with_unique_ids(turns: Sequence[RecordedTurn]) -> tuple[RecordedTurn, ...]:
    """Return turns without those source ids that several of them have: these identify nothing."""
    counts = Counter(turn.source_id for turn in turns)
    return tuple(
        msgspec.structs.replace(turn, source_id="") if counts[turn.source_id] > 1 else turn
        for turn in turns
    )


def by_speaker(transcript: Transcript) -> Transcript:
    """Return a transcript in which each turn belongs to the person who is named in it.

    A session of several people becomes one for each of them, under the same id. Where the two sides
    are two people (LoCoMo), each gets only what that person said. Turns without a name stay where
    they are.
    """
    sessions = tuple(own for session in transcript.conversations for own in _split(session))
    return msgspec.structs.replace(transcript, conversations=sessions)


def _split(session: RecordedSession) -> Iterator[RecordedSession]:
    turns: dict[str, list[RecordedTurn]] = {}
    for turn in session.turns:
        for own in _sides(turn) if session.user else (turn,):
            turns.setdefault(own.user_name, []).append(own)
    for name, own_turns in turns.items():
        yield msgspec.structs.replace(session, user=name, turns=tuple(own_turns))


def _sides(turn: RecordedTurn) -> Iterator[RecordedTurn]:
    for name, text in ((turn.user_name, turn.user), (turn.assistant_name, turn.assistant)):
        if text:
            yield msgspec.structs.replace(
                turn, user=text, assistant="", user_name=name, assistant_name="", messages=()
            )
