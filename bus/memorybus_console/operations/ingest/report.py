"""The report of an ingest, and the sum of several."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from memorybus_console.operations.ingest.refused import RefusedInput


class IngestReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an ingest did; its ``--json``.

    Attributes:
        files: how many files were read completely.
        sessions: how many sessions they hold.
        turns: how many turns the files hold, without the refused ones.
        known: how many of these the history had already, under whatever name and number.
        replaced: how many of these are a newer form of a turn that the history had: it takes the
            place of the older one.
        events: how many events were read from files of events, including those that the log had.
        skipped: how many messages were left out because they have no content.
        unread: how many lines and records could not be read; the first 100 of each file are among
            `refused`, each with its place and the reason.
        dropped: how often something was dropped, by its kind: reasoning, pictures, relations.
        new_events: by how many events the log grew meanwhile; None if Redis did not answer.
        level: ``logged`` if Redis has everything, else ``spooled``; None if nothing was published.
        refused: files and turns that were not published, and why.
        refused_turns: how many turns, or events of a file of events, were not published.
    """

    files: int = 0
    sessions: int = 0
    turns: int = 0
    known: int = 0
    replaced: int = 0
    events: int = 0
    skipped: int = 0
    unread: int = 0
    dropped: dict[str, int] = {}
    new_events: int | None = None
    level: Literal["logged", "spooled"] | None = None
    refused: tuple[RefusedInput, ...] = ()
    refused_turns: int = 0


def sum_reports(reports: Sequence[IngestReport]) -> IngestReport:
    """Return the report of several sources; it is ``spooled`` as soon as one of them is."""
    levels = {one.level for one in reports}
    return IngestReport(
        files=sum(one.files for one in reports),
        sessions=sum(one.sessions for one in reports),
        turns=sum(one.turns for one in reports),
        known=sum(one.known for one in reports),
        replaced=sum(one.replaced for one in reports),
        events=sum(one.events for one in reports),
        skipped=sum(one.skipped for one in reports),
        unread=sum(one.unread for one in reports),
        dropped=dict(sum((Counter(one.dropped) for one in reports), Counter())),
        level="spooled" if "spooled" in levels else "logged" if "logged" in levels else None,
        refused=tuple(refusal for one in reports for refusal in one.refused),
        refused_turns=sum(one.refused_turns for one in reports),
    )
