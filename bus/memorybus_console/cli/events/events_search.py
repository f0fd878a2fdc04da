"""``memorybus events search``: show one page of a search, its progress, and how to continue.

This module is imported when the command runs, not with the command line.
"""

from contextlib import closing

from memorybus.history.backward import BackwardMark
from memorybus.text.display import iso

from memorybus_console.cli.options import Common
from memorybus_console.operations import journal
from memorybus_console.operations.events.search import EventSearch, SearchRequest, format_mark
from memorybus_console.operations.events.words import SearchWords
from memorybus_console.views.events import event_json
from memorybus_console.views.found import found_lines
from memorybus_console.views.output import Output

INTERRUPTED = 130
SILENT_EVENTS = 5_000
"""How many events a search reads before it shows its progress."""


class SearchCommand:
    """One page of a search."""

    def __init__(self, common: Common, wanted: SearchRequest, before: BackwardMark | None) -> None:
        """Read the settings.

        Args:
            common: the options that lead to the settings.
            wanted: the events to search for.
            before: where an earlier search stopped.
        """
        self._output = common.output()
        self._settings = common.settings()
        self._wanted = wanted
        self._before = before

    def run(self, limit: int) -> int:
        """Show a page of at most `limit` events; return the exit code.

        Raises:
            LogError: Redis is away, or the log cannot be used as it is.
        """
        with closing(journal.open_history(self._settings)) as history:
            bar = SearchBar(self._output)
            search = EventSearch(history, self._wanted, self._before, bar.show)
            try:
                search.run(limit)
                code = int(bool(search.unread))
            except KeyboardInterrupt:
                code = INTERRUPTED
            finally:
                bar.end()
        self._show(search)
        return code

    def _show(self, search: EventSearch) -> None:
        self._output.note_unread(search.unread)
        if self._output.json:
            self._output.result(
                {
                    "events": [event_json(event) for event in search.found],
                    "next": format_mark(search.mark),
                    "looked": search.looked,
                    "back_to": iso(search.reached),
                    "unread": search.unread,
                }
            )
            return
        words = SearchWords(self._wanted.words)
        for event in search.found:
            self._output.show(found_lines(event.envelope, words, self._output.out.width))
        self._note_end(search)

    def _note_end(self, search: EventSearch) -> None:
        looked = f"looked at {search.looked:,} events"
        back = iso(search.reached)
        if search.mark is not None:
            more = f"to continue, add: --before {format_mark(search.mark)}"
            self._output.note(f"{looked}, back to {back}; {more}")
        elif not search.found:
            self._output.note(f"no such events: {looked}")


class SearchBar:
    """Shows how far a search is, once it takes a while."""

    def __init__(self, output: Output) -> None:
        self._bar = output.progress("events")
        self._bar.live.transient = True
        self._task = self._bar.add_task("searching", total=None)

    def show(self, search: EventSearch) -> bool:
        """Show how far a search is; return False, so that the search continues."""
        if search.looked >= SILENT_EVENTS:
            self._bar.start()
            what = f"searching, back to {(iso(search.reached) or '')[:19]}"
            self._bar.update(self._task, completed=search.looked, description=what)
        return False

    def end(self) -> None:
        """Remove the bar."""
        self._bar.stop()
