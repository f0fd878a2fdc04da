"""Shows people how well recall answered a file of questions; pure."""

from collections.abc import Iterable
from typing import TypedDict

from rich.table import Table
from rich.text import Text

from memorybus_console.operations.evaluation import Evaluation, JudgedAnswer
from memorybus_console.views.render import add_row, grid

_UNKNOWN = "-"


class Evaluated(TypedDict):
    """How well recall answered a file of questions; null where no question measures it."""

    questions: int
    found: float | None
    characters: float | None
    characters_for_nothing: float | None
    p50_ms: float | None
    answers: list[JudgedAnswer]


def evaluation_text(found: Evaluation) -> Text:
    """Return the figures of all questions together, a line for each."""
    rows = {
        "questions": str(found.questions),
        "found": _UNKNOWN if found.found is None else f"{found.found:.0%} of what was expected",
        "block": _characters(found.characters, "characters on average"),
        "nothing": _characters(
            found.characters_for_nothing, "characters (median) where nothing was expected"
        ),
        "time": _UNKNOWN if found.p50_ms is None else f"{found.p50_ms:.0f} ms (median)",
    }
    text = Text()
    for name, value in rows.items():
        text.append(f"{name:<11}", style="bold").append(f"{value}\n")
    return text


def missed_table(answers: Iterable[JudgedAnswer]) -> Table:
    """Return the questions for which expected memories were not recalled, and what is missing."""
    table = grid("question", "missing", texts=("question", "missing"))
    for one in answers:
        silent = [f"{name} did not answer: {why}" for name, why in one.silent.items()]
        add_row(table, one.question, "; ".join([*one.missing, *silent]))
    return table


def _characters(count: float | None, what: str) -> str:
    return _UNKNOWN if count is None else f"{count:,.0f} {what}"
