"""Shows the answer of any command: a list as a table, a struct as a block, either as JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, get_type_hints

import msgspec
from memorybus.text.display import format_size, iso, one_line
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from memorybus_console.result import Column, Presentation, Remark, Result, Unit
from memorybus_console.views.output import Output
from memorybus_console.views.render import duration, line, rate, short, table

_PLAIN = Column()


def present(output: Output, value: Any, if_empty: str = "") -> int:
    """Show a command's answer; return the exit code.

    Args:
        value: a struct, a list of structs, or the view of one.
        if_empty: the note that stands for an empty list.
    """
    if output.json:
        output.result(json_of(value))
    else:
        for part in parts_of(value):
            output.show(part)
    for note in _notes_of(value, if_empty):
        if not output.json or note.style in ("red", "yellow"):  # a program logs the problems, too
            output.note(note.text, note.style)
    if isinstance(value, Presentation):
        return value.code
    return int(isinstance(value, Result) and value.failed())


def json_of(value: Any) -> Any:
    """Return what ``--json`` prints of a command's answer."""
    return value.value if isinstance(value, Presentation) else value


def parts_of(value: Any) -> Iterator[RenderableType]:
    """Yield what stands for a value: a sentence, lines of its fields, tables of its lists."""
    if isinstance(value, Presentation):
        yield from value.parts
        return
    if isinstance(value, list):
        yield from [table_of(value)] if value else []
        return
    yield from _lines_of(value)
    lists = {title_of(*each): getattr(value, each[0]) for each in columns_of(type(value)).items()}
    tables = {title: rows for title, rows in lists.items() if _is_list_of_structs(rows)}
    for title, rows in tables.items():
        yield from [line(title, "bold")] if len(tables) > 1 else []
        yield table_of(rows)


def _lines_of(value: Any) -> Iterator[Text]:
    """Yield the sentence that sums a value up, and lines: its own, or those of its fields."""
    headline = value.headline() if isinstance(value, Result) else ""
    facts = value.facts() if isinstance(value, Result) else {}
    if headline:
        yield line(headline)
    if facts:
        yield block({title: Text(one_line(text)) for title, text in facts.items()})
    elif not headline and (fields := _fields_of(value)):
        yield block(fields)


def _notes_of(value: Any, if_empty: str) -> Iterator[Remark]:
    if isinstance(value, Result):
        yield from value.notes()
    if isinstance(value, Presentation):
        yield from value.notes
    if not value and if_empty:
        yield Remark(if_empty)


def table_of(rows: Sequence[msgspec.Struct], without: str = "") -> Table:
    """Return structs of one type as a table; the field `without` is left out."""
    shown = [item for item in columns_of(type(rows[0])).items() if item[0] != without]
    wraps = [title_of(name, column) for name, column in shown if column.wraps]
    heads = (title_of(name, column) for name, column in shown)
    cells = ([cell_of(getattr(row, name), column) for name, column in shown] for row in rows)
    return table(heads, cells, texts=wraps)


def _fields_of(value: Any) -> dict[str, Text]:
    """Return a struct's fields as people see them, by title, but no blanks or lists of structs."""
    return {
        title_of(name, column): cell_of(getattr(value, name), column)
        for name, column in columns_of(type(value)).items()
        if not _is_list_of_structs(getattr(value, name)) and not _is_blank(getattr(value, name))
    }


def block(lines: Mapping[str, Text]) -> Text:
    width = max(map(len, lines))
    return Text("\n").join(
        Text.assemble((f"{title:<{width}}  ", "bold"), text) for title, text in lines.items()
    )


def columns_of(kind: Any) -> Mapping[str, Column]:
    """Return how those fields of a type are shown that people see, by name."""
    hints = get_type_hints(kind, include_extras=True)
    columns = {name: _column_of(hints[name]) for name in kind.__struct_fields__}
    return {name: column for name, column in columns.items() if not column.hidden}


def _column_of(hint: Any) -> Column:
    given = getattr(hint, "__metadata__", ())
    return next((each for each in given if isinstance(each, Column)), _PLAIN)


def title_of(name: str, column: Column) -> str:
    return column.title or name.replace("_", " ")


def cell_of(value: Any, column: Column) -> Text:
    """Return a value as people see it; one that is styled already stays as it is."""
    if isinstance(value, Text):
        return value
    return Text(one_line(text_of(value, column), column.most), column.style if value else "")


def text_of(value: Any, column: Column = _PLAIN) -> str:
    """Return a value in words; "-" for one that is unknown."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return column.words[value]
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={text_of(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(text_of, value))
    return _with_unit(value, column)


def _with_unit(value: Any, column: Column) -> str:
    return _FORMATS.get(column.unit, str)(value)


def _time(value: Any) -> str:
    return short(value if isinstance(value, str) else iso(value)) or "-"


_FORMATS: Mapping[Unit, Callable[[Any], str]] = MappingProxyType(
    {
        "bytes": format_size,
        "milliseconds": "{:.0f} ms".format,
        "rate": lambda value: str(rate(value)),
        "seconds": duration,
        "share": "{:.0%}".format,
        "time": _time,
    }
)


def _is_blank(value: Any) -> bool:
    return isinstance(value, str | Mapping | list | tuple) and not value


def _is_list_of_structs(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(
        isinstance(item, msgspec.Struct) for item in value
    )
