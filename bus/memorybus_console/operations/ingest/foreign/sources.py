"""The sources, each with how its export is read.

The formats were read in mem0ai 2.2.1 (``mem0/memory/main.py``, ``mem0/configs/base.py``),
hindsight-client 1.1.0 (``memory_unit_list_item.py``, ``list_memory_units_response.py``), honcho-ai
2.7.0 (``honcho/api_types.py``, ``honcho/pagination.py``) and zep-cloud 4.0.1 (``zep_cloud/types``).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import msgspec
from memorybus.ids import text_digest

from memorybus_console.operations.ingest.foreign import letta
from memorybus_console.operations.ingest.foreign.records import (
    Export,
    ForeignError,
    ForeignMemory,
    ForeignMessage,
    ParsedExport,
    ParsedRecord,
    Record,
    Speaker,
    begin_of,
    parse_export,
    parse_records,
    text_of,
    time_of,
)
from memorybus_console.operations.ingest.reading.names import id_text, role_of
from memorybus_console.operations.ingest.report import LeftOut

LISTS = ("thoughts",)
_REPLACING_RELATIONS = frozenset(("supersedes", "corrects", "invalidates"))


def parse(export: Export) -> ParsedExport:
    """Return the thoughts of an export.

    A thought that supersedes, corrects or invalidates another one of this export replaces it.
    Thoughts with the scope of an agent are the agent's own notes; all others belong to a person.

    Raises:
        ForeignError: the file cannot be read.
    """
    left_out = LeftOut()
    records = list(export.records(LISTS, left_out))
    parsed = parse_records(records, _parse_thought, left_out)
    replaced = {
        id_text(record.value.get("id")): _replaced_ids(record.value.get("relations"))
        for record in records
    }
    given = (record.value.get("relations") for record in records)
    relations = sum(len(listed) for listed in given if isinstance(listed, list))
    left_out.drop("relations", relations - sum(map(len, replaced.values())))
    texts = {kept.id: kept.text for kept in parsed.memories}
    parsed.memories = [_with_replaced(kept, replaced[kept.id], texts) for kept in parsed.memories]
    return parsed


def _parse_thought(record: Record) -> ParsedRecord:
    scope = text_of(record, "scope", default="")
    relations = record.value.get("relations")
    if not isinstance(relations, list | None):
        raise ForeignError(f"'relations' must be a list, not {type(relations).__name__}")
    return ForeignMemory(
        id=text_of(record, "id"),
        text=text_of(record, "content"),
        at=begin_of(record, "timestamp"),
        user=text_of(record, "agent_owner", default=""),
        agent=text_of(record, "agent_id", default=""),
        store="memory" if scope.lower() == "agent" else "user",
        kind=text_of(record, "thought_type", default=""),
    )


def _replaced_ids(relations: object) -> Sequence[str]:
    given = relations if isinstance(relations, list) else []
    return [
        id_text(relation.get("target_id"))
        for relation in given
        if isinstance(relation, dict) and str(relation.get("kind")).lower() in _REPLACING_RELATIONS
    ]


def _with_replaced(
    kept: ForeignMemory, targets: Sequence[str], texts: Mapping[str, str]
) -> ForeignMemory:
    old = next((texts[target] for target in targets if target in texts), "")
    return msgspec.structs.replace(kept, replaces=old)


_SPEAKERS: Mapping[str | None, Speaker] = MappingProxyType(
    {"user": "user", "assistant": "assistant"}
)


def _read_mem0(record: Record) -> ParsedRecord:
    """Read a memory; one with an agent and no person is the agent's own note."""
    user, agent = _optional(record, "user_id"), _optional(record, "agent_id")
    return ForeignMemory(
        id=text_of(record, "id"),
        text=text_of(record, "memory", "text"),
        at=begin_of(record, "updated_at", "created_at"),
        user=user,
        agent=agent,
        store="memory" if agent and not user else "user",
        session=_optional(record, "run_id"),
    )


def _read_hindsight(record: Record) -> ParsedRecord:
    """Read a fact; observations are left out, since Hindsight makes them from its facts.

    A bank is no person: a memory belongs to the ``user_id`` in its ``metadata``, if there is one.
    The ZIP archive of ``export_bank`` is not read.
    """
    kind = _optional(record, "fact_type")
    if kind == "observation":
        return None
    at = time_of(record, "mentioned_at", "date", "occurred_start")
    ended = record.value.get("state") == "invalidated"
    metadata = record.value.get("metadata")
    owners = metadata if isinstance(metadata, dict) else {}
    user, agent = (owners.get(name) for name in ("user_id", "agent_id"))
    return ForeignMemory(
        id=text_of(record, "id"),
        text=text_of(record, "text"),
        at=at,
        until=(time_of(record, "invalidated_at", "updated_at") or at or 0) if ended else None,
        user=user if isinstance(user, str) else "",
        agent=agent if isinstance(agent, str) else "",
        session=_optional(record, "document_id"),
        kind=kind,
    )


def _read_honcho(record: Record) -> ParsedRecord:
    """Read a conclusion about a peer, or a message; a peer not known as an agent is a person.

    Honcho has no export of its own: a file has pages of its API, or their items, in any mixture.
    """
    if "observed_id" not in record.value:
        return ForeignMessage(
            id=text_of(record, "id"),
            speaker="user",
            text=text_of(record, "content"),
            session=text_of(record, "session_id"),
            at=time_of(record, "created_at"),
            user=text_of(record, "peer_id"),
        )
    observer, observed = text_of(record, "observer_id"), text_of(record, "observed_id")
    return ForeignMemory(
        id=text_of(record, "id"),
        text=text_of(record, "content"),
        at=time_of(record, "created_at"),
        user=observed,
        agent=observer if observer != observed else "",
        session=_optional(record, "session_id"),
        kind="conclusion",
    )


def _read_zep(record: Record, thread: str) -> ParsedRecord:
    """Read a fact of the graph, or a message; one without a thread belongs to that of the file.

    Earlier releases have the role in ``role_type`` and the speaker's name in ``role``. Messages of
    a system or a tool are left out.
    """
    user = _optional(record, "user_id", "user_uuid")
    if "fact" in record.value:
        return ForeignMemory(
            id=text_of(record, "uuid", "uuid_", "id"),
            text=text_of(record, "fact"),
            at=begin_of(record, "created_at"),
            user=user,
            kind="fact",
        )
    text_of(record, "role_type", "role")
    speaker = _SPEAKERS.get(role_of(record.value))
    if speaker is None:
        return None
    return ForeignMessage(
        id=text_of(record, "uuid", "uuid_", "id"),
        speaker=speaker,
        text=text_of(record, "content"),
        session=text_of(record, "thread_id", "thread_uuid", "session_id", default=thread),
        at=time_of(record, "reference_time", "created_at"),
        user=user if speaker == "user" else "",
        name=_optional(record, "role" if "role_type" in record.value else "name"),
    )


def _parse_zep(export: Export) -> ParsedExport:
    lists = ("items", "messages", "edges", "facts", "relevant_facts", "threads", "sessions")
    return parse_export(export, lists, partial(_read_zep, thread=Path(export.name).stem))


def _read_stored(record: Record) -> ParsedRecord:
    """Read a memory as ``memorybus export --provider`` writes it (`StoredMemory`).

    Memories that are messages of a conversation become turns again; all others become memories.
    Records of speakers' names are left out, since messages carry the names. Sessions of two people
    with the same id stay separate.
    """
    kind, session = _optional(record, "kind"), _optional(record, "session")
    if kind == "speaker":
        return None
    user, agent = _optional(record, "user"), _optional(record, "agent")
    workspace, at, text = (
        _optional(record, "workspace"),
        time_of(record, "at"),
        text_of(record, "text"),
    )
    speaker = _SPEAKERS.get(kind) if session else None
    if speaker is not None:
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
            name=_optional(record, "speaker"),
        )
    return ForeignMemory(
        id=_optional(record, "event"),
        text=text,
        at=at,
        until=time_of(record, "until"),
        user=user,
        agent=agent,
        workspace=workspace,
        store="user" if user or not agent else "memory",
        session=session,
        kind=kind,
    )


def _optional(record: Record, *names: str) -> str:
    return text_of(record, *names, default="")


def _lists(read: Callable[[Record], ParsedRecord], *lists: str) -> Callable[[Export], ParsedExport]:
    return partial(parse_export, lists=lists, read=read)


PARSERS: Mapping[str, Callable[[Export], ParsedExport]] = MappingProxyType({
    "mem0": _lists(_read_mem0, "results", "memories"),
    "hindsight": _lists(_read_hindsight, "items", "memories"),
    "honcho": _lists(_read_honcho, "items", "messages", "conclusions", "sessions"),
    "mentisdb": parse,
    "zep": _parse_zep,
    "letta": letta.parse,
    "memorybus": _lists(_read_stored, "memories"),
})  # fmt: skip
"""The parser of each source; raises `ForeignError` if nothing can be read."""
