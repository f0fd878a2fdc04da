"""Counts rows with DuckDB, which reads of the files only the columns that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from memorybus.archive.format.figures import COUNTED_COLUMNS, FIGURES, Figures
from memorybus.errors import ArchiveDamaged, MemoryBusError, install_command
from memorybus.insights import statements
from memorybus.insights.activity import QUARTER, activity_of, days_of
from memorybus.insights.conditions import condition, joined
from memorybus.insights.report import (
    Aged,
    Conclusions,
    Delegations,
    LongSession,
    MemoryUse,
    Overview,
    ProviderRecall,
    RecallFigures,
    Share,
    SkillUse,
    ToolUse,
    UsedMemory,
)
from memorybus.insights.rows import CountableRows
from memorybus.query.query import Query

if TYPE_CHECKING:
    import duckdb

_MEMORY = "256MB"
"""What DuckDB may use; beyond it, it writes to a temporary directory (G10)."""

_LONGEST = 5
_MOST_USED = 10
_FIGURES = Figures.__struct_fields__
# Each figure is a column of the view, since DuckDB reads all fields of a struct that comes from a
# union, which costs three times as much as the rest of a scan.
_COLUMNS = ", ".join(
    [f'"{name}"' for name in COUNTED_COLUMNS] + [f"{FIGURES}.{name} as {name}" for name in _FIGURES]
)


class MissingDuckDb(MemoryBusError):
    """The extra `insights` is not installed."""


@contextmanager
def counting(
    rows: CountableRows, since: int, wanted: Query, forgotten: Sequence[Query]
) -> Iterator[Counter]:
    """Count the rows that are wanted within a context, on whose end DuckDB is closed.

    Args:
        rows: the rows of the history.
        since: the earliest time of a counted event, milliseconds.
        wanted: the events that are counted.
        forgotten: the events that nobody may read.

    Raises:
        MissingDuckDb: the extra `insights` is not installed.
        ArchiveDamaged: a file cannot be read.
    """
    with TemporaryDirectory(prefix="memorybus-insights-") as spill, _connect(spill) as db:
        counter = Counter(db, since)
        counter.load(rows, wanted, forgotten)
        yield counter


class Counter:
    """Counts rows. Belongs to one thread.

    Args:
        db: a database of its own.
        since: the earliest time of a counted event, milliseconds.
    """

    def __init__(self, db: duckdb.DuckDBPyConnection, since: int) -> None:
        self._db = db
        self._since = since

    def load(self, rows: CountableRows, wanted: Query, forgotten: Sequence[Query]) -> None:
        """Make the tables that the statements count."""
        self._register(rows)
        words: list[Sequence[str]] = []
        hidden = [condition(query, words) for query in joined(forgotten)]
        parts = [condition(wanted, words), *(f"not ({part})" for part in hidden)]
        self._rows("create temp table words (number integer, word varchar)")
        for number, listed in enumerate(words):
            self._rows(statements.ADD_WORDS, number=number, listed=list(listed))
        self._rows(statements.RETRACTED)
        (retracted,) = self._row("select count(*) from retracted")
        self._rows(
            statements.COUNTED.format(
                figures=", ".join(_FIGURES),
                wanted=" and ".join(parts),
                standing=statements.STANDING if retracted else "",
                since=self._since,
            )
        )
        for statement in statements.TABLES:
            self._rows(statement)

    def _register(self, rows: CountableRows) -> None:
        """Make the view ``rows``; an event that entered the log again counts once."""
        import pyarrow as pa

        sources = []
        if rows.files:
            files = ", ".join("'" + file.replace("'", "''") + "'" for file in rows.files)
            # Without the option, a folder named `user=ann` would replace that column.
            sources.append(f"read_parquet([{files}], hive_partitioning = false)")
        for number, table in enumerate(rows.tables):
            self._db.register(f"table_{number}", table)
            sources.append(f"table_{number}")
        if not sources:
            self._db.register("nothing", empty_rows(pa))
            sources.append("nothing")
        union = " union all ".join(f"select {_COLUMNS} from {source}" for source in sources)  # noqa: S608
        self._rows(f"create view read as {union}")
        (resent,) = self._row("select count(*) from read where kind = 'r'")
        once = "distinct on (id) " if resent else ""
        self._rows(f"create view rows as select {once}* from read")  # noqa: S608

    def _rows(self, sql: str, **values: object) -> list[Any]:
        import duckdb

        try:
            return self._db.execute(sql, values).fetchall()
        except duckdb.Error as error:  # a damaged file raises nearly any of its subclasses
            raise ArchiveDamaged(
                f"a segment cannot be read ({' '.join(str(error).split())[:200]}); run: "
                "memorybus archive verify"
            ) from error

    def _row(self, sql: str, **values: object) -> Any:
        return self._rows(sql, **values)[0]

    def figures(self, zone: tzinfo) -> dict[str, Any]:
        """Return the fields of `Insights` that are counted; days and hours are those of `zone`."""
        return {
            "overview": self.overview(),
            "models": self.shares("model"),
            "platforms": self.shares("platform"),
            "agents": self.shares("agent"),
            "people": self.shares("user"),
            "tools": self.tools(),
            "skills": self.skills(),
            "activity": activity_of(self._rows(statements.ACTIVITY, quarter=QUARTER), zone),
            "longest": self.longest(),
            "compressions": self.compressions(),
            "delegations": self.delegations(),
            "memories": self.memories(),
            "aged": Aged(*self._row(statements.AGED)),
            "recall": self.recall(zone),
            "derived": [Conclusions(*row) for row in self._rows(statements.DERIVED)],
        }

    def overview(self) -> Overview:
        """Return the totals."""
        sessions, turns, hours = self._row(statements.OVERVIEW)
        messages, calls, user, assistant, tool, first, last, without_tokens = self._row(
            statements.ROLES
        )
        tokens_in, tokens_out, cost, without_cost = self._row(statements.TOKENS)
        return Overview(
            sessions=sessions,
            turns=int(turns or 0),
            messages=int(messages or 0),
            user_messages=int(user or 0),
            assistant_messages=int(assistant or 0),
            tool_messages=int(tool or 0),
            tool_calls=int(calls or 0),
            hours=hours or 0.0,
            tokens_in=int(tokens_in or 0),
            tokens_out=int(tokens_out or 0),
            cost=cost,
            turns_without_tokens=without_tokens,
            sessions_without_cost=without_cost,
            first=first or 0,
            last=last or 0,
        )

    def shares(self, name: str) -> list[Share]:
        """Return the part of each model, platform, agent or user, as `name` says."""
        order = statements.BY_TOKENS if name == "model" else statements.BY_SESSIONS
        sql = statements.SHARES.format(
            name="t.model" if name == "model" else f's."{name}"', order=order
        )
        return [
            Share(
                name=label,
                sessions=sessions,
                turns=turns,
                messages=int(messages),
                tool_calls=int(calls),
                tokens_in=int(tokens_in),
                tokens_out=int(tokens_out),
                cost=cost,
                last=last,
            )
            for label, sessions, turns, messages, calls, tokens_in, tokens_out, cost, last in (
                self._rows(sql)
            )
        ]

    def tools(self) -> list[ToolUse]:
        """Return the tools, the most used first."""
        return [ToolUse(*row) for row in self._rows(statements.TOOLS)]

    def skills(self) -> list[SkillUse]:
        """Return the skills, the most used first."""
        return [
            SkillUse(name, int(loads), int(edits), last)
            for name, loads, edits, last in (self._rows(statements.SKILLS))
        ]

    def longest(self) -> list[LongSession]:
        """Return the longest sessions."""
        rows = self._rows(statements.LONG, longest=_LONGEST)
        return [LongSession(*row) for row in rows]

    def compressions(self) -> int:
        """Return how often a context was compressed."""
        return int(self._row(statements.COMPRESSIONS)[0])

    def delegations(self) -> Delegations:
        """Return what sub-agents did."""
        count, calls, tokens_in, tokens_out = map(int, self._row(statements.DELEGATIONS))
        return Delegations(
            count=count, tool_calls=calls, tokens_in=tokens_in, tokens_out=tokens_out
        )

    def memories(self) -> list[MemoryUse]:
        """Return what was learned, corrected and removed."""
        return [
            MemoryUse(where=where, learned=add, corrected=replace, removed=remove, other=other)
            for where, add, replace, remove, other in self._rows(statements.MEMORIES)
        ]

    def recall(self, zone: tzinfo) -> RecallFigures:
        """Return what memory gave to prompts."""
        return RecallFigures(
            [ProviderRecall(*row) for row in self._rows(statements.RECALLS)],
            days_of(self._rows(statements.PROMPTS, quarter=QUARTER), zone),
            [UsedMemory(*row) for row in self._rows(statements.USED, most=_MOST_USED)],
        )

    def without_content(self) -> int:
        """Return how many events of these days lost their content to `retention`."""
        return int(self._row(statements.KEPT_OUT, since=self._since)[0])


def import_duckdb() -> Any:
    """Return the module `duckdb`.

    Raises:
        MissingDuckDb: it, or pyarrow, is not installed.
    """
    try:
        import duckdb
        import pyarrow as pa  # noqa: F401  its tables are what DuckDB reads
    except ImportError as error:
        raise MissingDuckDb(
            f"insights need {error.name or 'duckdb'}, of the extra `insights`; "
            f"run: {install_command('insights')}"
        ) from error
    return duckdb


def _connect(spill: str) -> duckdb.DuckDBPyConnection:
    # Nothing is fetched from the network, whatever a query uses.
    config: dict[str, Any] = {
        "memory_limit": _MEMORY,
        "temp_directory": spill,
        "python_enable_replacements": False,  # a table is never a Python variable of that name
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    connection: duckdb.DuckDBPyConnection = import_duckdb().connect(config=config)
    connection.execute("set enable_progress_bar = false")  # it would stand in the output
    connection.execute("set parquet_metadata_cache = true")  # several statements read each file
    return connection


def empty_rows(pa: Any) -> Any:
    """Return no rows, with the columns of rows (`pyarrow.Table`)."""
    from memorybus.archive.format.figures import figures_type

    kinds = {"id": pa.uuid(), "at": pa.timestamp("ms", "UTC"), FIGURES: figures_type(pa)}
    names = (*COUNTED_COLUMNS, FIGURES)
    return pa.schema([(name, kinds.get(name, pa.string())) for name in names]).empty_table()
