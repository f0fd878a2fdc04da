"""Fills the table of the fault suite in ``docs/faults.md``: ``python docs/fault_table.py``.

The figures come from ``bench/out/faults.jsonl``, which ``make faults`` and ``make soak`` write: one
line for each row (see `helpers.faults.results`). Nobody types them. A row that did not run keeps
its line, which names the commit on which it ran.
"""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "out" / "faults.jsonl"
PAGE = Path(__file__).with_name("faults.md")
MARK = re.compile(r"<!-- faults -->\n(.*?)<!-- end faults -->", re.DOTALL)
HEAD = (
    "| row | share | rounds | faults | events | lost | twice | besides | commit |\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)


class NoTable(Exception):
    """The figures are no table: there are none, or of a row that failed."""


def table(lines: list[dict[str, Any]], before: str = "") -> str:
    """Return the table of some rows, and of the other rows of an earlier table, in order.

    Raises:
        NoTable: there is no row, or one of them failed.
    """
    failed = [line["row"] for line in lines if line["failed"]]
    if failed:
        raise NoTable(f"these rows failed; mend that, and run them again: {', '.join(failed)}")
    if not lines:
        raise NoTable("no row has run; run: make faults SHARE=0.25")
    rows = _rows(before.splitlines()[HEAD.count("\n") :]) | _rows(map(_line, lines))
    return HEAD + "\n".join(rows[name] for name in sorted(rows))


def _rows(lines: Iterable[str]) -> dict[str, str]:
    """Return the lines of a table without its head, by the names of their rows."""
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def _line(line: dict[str, Any]) -> str:
    besides = ", ".join(
        f"{name.replace('_', ' ')} {_cell(value)}" for name, value in line["besides"].items()
    )
    counts = [_cell(line[name]) for name in ("rounds", "faults", "events", "lost", "twice")]
    when = f"{line['commit']}, {line['day']}, seed {line['seed']}"
    cells = (line["row"], f"{line['share']:g}", *counts, besides, when)
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        least, most = value
        return f"{least:,.4g}" if least == most else f"{least:,.4g} to {most:,.4g}"
    return f"{value:,}"


def filled(page: str, lines: list[dict[str, Any]]) -> str:
    """Return the page with its table written anew.

    Raises:
        NoTable: see `table`.
    """
    return MARK.sub(
        lambda found: f"<!-- faults -->\n{table(lines, found[1])}\n<!-- end faults -->", page
    )


def main() -> int:
    """Write the page."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    try:
        page = filled(PAGE.read_text(), [json.loads(line) for line in lines])
    except NoTable as error:
        sys.stderr.write(f"{error}\n")
        return 1
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
