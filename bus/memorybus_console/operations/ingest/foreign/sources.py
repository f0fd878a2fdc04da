"""Lists the sources, and reads the exports of each."""

from collections.abc import Callable, Mapping
from datetime import tzinfo
from pathlib import Path
from types import MappingProxyType

import msgspec

from memorybus_console.operations.ingest.foreign import (
    hindsight,
    honcho,
    letta,
    live,
    mem0,
    memorybus_export,
    mentisdb,
    zep,
)
from memorybus_console.operations.ingest.foreign.enveloping import (
    EnvelopedExport,
    ImportOwner,
    build_envelopes,
)
from memorybus_console.operations.ingest.foreign.model import ForeignError, ParsedExport
from memorybus_console.operations.ingest.foreign.reading import Export
from memorybus_console.operations.ingest.foreign.service import ForeignService

PARSERS: Mapping[str, Callable[[Export], ParsedExport]] = MappingProxyType({
    "mem0": mem0.parse, "hindsight": hindsight.parse, "honcho": honcho.parse,
    "mentisdb": mentisdb.parse, "zep": zep.parse, "letta": letta.parse,
    "memorybus": memorybus_export.parse,
})  # fmt: skip
"""The parser of each source; raises `ForeignError` if nothing can be read."""


def read_file(
    source: str, path: Path, owner: ImportOwner, now: int, zone: tzinfo
) -> tuple[EnvelopedExport, int]:
    """Return the events of an exported file, and how many of its records were left out.

    Args:
        source: the source's name.
        owner: the owner of the memories.
        now: the present, milliseconds.
        zone: the zone of times that name none.

    Raises:
        ForeignError: it cannot be read.
    """
    try:
        data, modified = path.read_bytes(), path.stat().st_mtime_ns // 1_000_000
    except OSError as error:
        raise ForeignError(error.strerror or str(error), str(path)) from error
    found = PARSERS[source](Export(data, str(path), zone))
    return build_envelopes(source, str(path), found, owner, modified, now), found.skipped


def read_address(
    source: str,
    address: str,
    key: str,
    owner: ImportOwner,
    now: int,
    zone: tzinfo,
    step: Callable[[], None],
) -> tuple[EnvelopedExport, int]:
    """Return the events of a source's running service, and how many records were left out.

    Args:
        source: the source's name.
        address: the address of its API.
        key: the key for it; "" for none.
        owner: the owner of the memories.
        now: the present, which is the time of records without one, milliseconds.
        zone: the zone of times that name none.
        step: called for each page.

    Raises:
        ForeignError: it cannot be read from a service, or does not answer as documented.
    """
    if source not in live.SOURCES:
        names = ", ".join(live.SOURCES)
        raise ForeignError(f"{source} is read of files; where they run: {names}")
    known, lines = live.SOURCES[source], []
    for page in known.pages(ForeignService(address, known.headers(key))):
        step()
        lines.append(msgspec.json.encode(page))
    found = PARSERS[source](Export(b"\n".join(lines) or b"[]", address, zone))
    return build_envelopes(source, address, found, owner, now, now), found.skipped
