"""The memories of a provider, as ``memorybus export --provider`` writes them: one on each line.

So every provider can get what one backend knew before the bus was used. Only ``text`` is always
present; ``user``, ``agent``, ``workspace``, ``kind``, ``session``, ``at``, ``speaker``, ``event``
and ``until`` are present where the provider knows them (`StoredMemory`).
"""

from memorybus.ids import text_digest

from memorybus_console.operations.ingest.foreign.model import (
    ForeignMemory,
    ForeignMessage,
    ParsedExport,
    ParsedRecord,
    Record,
    Speaker,
    text_of,
    time_of,
)
from memorybus_console.operations.ingest.foreign.reading import Export, parse_export

LISTS = ("memories",)
_SPEAKERS: dict[str, Speaker] = {"user": "user", "assistant": "assistant"}
_NAME = "speaker"


def parse(export: Export) -> ParsedExport:
    """Return the memories of an export.

    Memories that are messages of a conversation become turns again; all others become memories.
    Records of speakers' names are left out, since messages carry the names. Sessions of two people
    with the same id stay separate.

    Raises:
        ForeignError: the file cannot be read.
    """
    return parse_export(export, LISTS, _parse_record)


def _parse_record(record: Record) -> ParsedRecord:
    kind, session = (text_of(record, name, default="") for name in ("kind", "session"))
    if kind == _NAME:
        return None
    speaker = _SPEAKERS.get(kind) if session else None
    return (
        _parse_memory(record, kind, session)
        if speaker is None
        else _parse_message(record, speaker, session)
    )


def _parse_message(record: Record, speaker: Speaker, session: str) -> ForeignMessage:
    text, at = text_of(record, "text"), time_of(record, "at")
    agent, user, workspace = (
        text_of(record, n, default="") for n in ("agent", "user", "workspace")
    )
    source_id = text_of(record, "event", default=f"{at}:{text_digest(text)}")
    return ForeignMessage(
        id=f"{speaker}:{source_id}",
        speaker=speaker,
        text=text,
        session="/".join(filter(None, (agent, workspace, user, session))),
        at=at,
        user=user if speaker == "user" else "",
        agent=agent,
        workspace=workspace,
        name=text_of(record, "speaker", default=""),
    )


def _parse_memory(record: Record, kind: str, session: str) -> ForeignMemory:
    user, agent = (text_of(record, name, default="") for name in ("user", "agent"))
    return ForeignMemory(
        id=text_of(record, "event", default=""),
        text=text_of(record, "text"),
        at=time_of(record, "at"),
        until=time_of(record, "until"),
        user=user,
        agent=agent,
        workspace=text_of(record, "workspace", default=""),
        store="user" if user or not agent else "memory",
        session=session,
        kind=kind,
    )
