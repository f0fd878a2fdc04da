"""Mem0: the memories that ``get_all`` returns, or ``GET /memories`` of its server.

Read in mem0ai 2.2.1 (``mem0/memory/main.py``, ``_get_all_from_vector_store``; ``MemoryItem`` of
``mem0/configs/base.py``): ``{"results": [{"id", "memory", "hash", "metadata", "created_at",
"updated_at", "expiration_date", "user_id", "agent_id", "run_id", "actor_id", "role"}],
"relations": […]}``. ``get_all`` returns 20
memories unless ``top_k`` says more.
"""

from memorybus_console.operations.ingest.foreign.model import (
    ForeignMemory,
    ParsedExport,
    ParsedRecord,
    Record,
    begin_of,
    text_of,
)
from memorybus_console.operations.ingest.foreign.reading import Export, parse_export

LISTS = ("results", "memories")


def parse(export: Export) -> ParsedExport:
    """Return the memories of an export.

    A memory with an agent and no person is the agent's own note.

    Raises:
        ForeignError: the file cannot be read.
    """
    return parse_export(export, LISTS, _parse_memory)


def _parse_memory(record: Record) -> ParsedRecord:
    user, agent = text_of(record, "user_id", default=""), text_of(record, "agent_id", default="")
    return ForeignMemory(
        id=text_of(record, "id"),
        text=text_of(record, "memory", "text"),
        at=begin_of(record, "updated_at", "created_at"),
        user=user,
        agent=agent,
        store="memory" if agent and not user else "user",
        session=text_of(record, "run_id", default=""),
    )
