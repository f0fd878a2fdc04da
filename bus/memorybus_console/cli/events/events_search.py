"""``memorybus events search``: show one page of a search, its progress, and how to continue.

This module is imported when the command runs, not with the command line.
"""

from collections.abc import Iterator
from contextlib import closing

from memorybus.history.backward import BackwardMark
from memorybus.text.display import iso

from memorybus_console.cli.options import Common
from memorybus_console.operations import journal
from memorybus_console.operations.events.search import (
    EventSearch,
    SearchRequest,
    SearchWords,
    format_mark,
)
from memorybus_console.result import Presentation, Remark, unread_notes
from memorybus_console.views.events import EventsFound, found_lines, placed
from memorybus_console.views.output import Output

INTERRUPTED = 130
SILENT_EVENTS = 5_000  # how many events a search reads before it shows its progress


def search_page(
    common: Common, request: SearchRequest, before: BackwardMark | None, limit: int
) -> Presentation[EventsFound]:
    """Return a page of at most `limit` events; on Ctrl-C those that were found until then."""
    output = common.output()
    with closing(journal.open_history(common.settings())) as history:
        bar = SearchBar(output)
        search = EventSearch(history, request, before, bar.show)
        try:
            search.run(limit)
            code = int(bool(search.unread))
        except KeyboardInterrupt:
            code = INTERRUPTED
        finally:
            bar.end()
    page = EventsFound(
        events=list(map(placed, search.found)),
        next=format_mark(search.mark),
        checked=search.checked,
        back_to=iso(search.reached),
        unread=list(search.unread),
    )
    words, width = SearchWords(request.words), output.out.width
    lines = (found_lines(event.envelope, words, width) for event in search.found)
    return Presentation(page, lines, notes=_notes(page), code=code)


def _notes(page: EventsFound) -> Iterator[Remark]:
    yield from unread_notes(page.unread)
    checked = f"looked at {page.checked:,} events"
    if page.next is not None:
        yield Remark(f"{checked}, back to {page.back_to}; to continue, add: --before {page.next}")
    elif not page.events:
        yield Remark(f"no such events: {checked}")


class SearchBar:
    """Shows how far a search is, once it takes a while."""

    def __init__(self, output: Output) -> None:
        self._bar = output.progress("events")
        self._bar.live.transient = True
        self._task = self._bar.add_task("searching", total=None)

    def show(self, search: EventSearch) -> bool:
        """Show how far a search is; return False, so that the search continues."""
        if search.checked >= SILENT_EVENTS:
            self._bar.start()
            what = f"searching, back to {(iso(search.reached) or '')[:19]}"
            self._bar.update(self._task, completed=search.checked, description=what)
        return False

    def end(self) -> None:
        self._bar.stop()
