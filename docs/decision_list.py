"""Write the list of decisions from their files: ``python docs/decision_list.py [--check]``."""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from pages import write_or_check

FOLDER = Path(__file__).with_name("decisions")
PAGE = FOLDER / "README.md"

FILE = re.compile(
    r"# (?P<number>\d+)\. (?P<title>\S.*)\n\n"
    r"Date: (?P<date>\d{4}-\d\d-\d\d)\n\n"
    r"Status: (?P<status>accepted|superseded by (?P<successor>\d+))\n\n"
    r"(?=##? |\S)"
)

HEAD = """# Decisions

Each file is one decision: the question that was open, the choice with its reasons, and what was
given up for it. A decision that no longer holds stays; its status names the one that replaced it.

To add one, write `NNNN-some-words.md` with the next number in the form of the others, and run
`make docs`, which writes this list.

| number | decision | date | status |
|---|---|---|---|
"""


class Decision(NamedTuple):
    """What the list shows of one file."""

    number: int
    title: str
    date: str
    status: str
    successor: int | None
    file: str


class BadDecision(Exception):
    """A file does not have the form of a decision, or names one that does not exist."""


def read(path: Path) -> Decision:
    """Read the head of one decision.

    Raises:
        BadDecision: the file has another form, or another number than its name.
    """
    found = FILE.match(path.read_text())
    if found is None:
        raise BadDecision(f"{path.name} does not begin with '# NN. Title', Date and Status")
    number = int(found["number"])
    if not re.fullmatch(rf"{number:04d}-[a-z0-9-]+\.md", path.name):
        raise BadDecision(f"{path.name} holds decision {number}")
    successor = int(found["successor"]) if found["successor"] else None
    return Decision(number, found["title"], found["date"], found["status"], successor, path.name)


def decisions(folder: Path = FOLDER) -> list[Decision]:
    """Read all decisions, in the order of their numbers.

    Raises:
        BadDecision: a file has another form, a number stands twice, or a successor is missing.
    """
    found = sorted(read(path) for path in folder.glob("*.md") if path.name != PAGE.name)
    numbers = [decision.number for decision in found]
    for number in set(numbers):
        if numbers.count(number) > 1:
            raise BadDecision(f"decision {number} stands in several files")
    for decision in found:
        if decision.successor is not None and decision.successor not in numbers:
            raise BadDecision(f"{decision.file} names decision {decision.successor}, which is none")
    return found


def page(found: list[Decision]) -> str:
    """Return the whole page."""
    rows = (f"| {d.number} | [{d.title}]({d.file}) | {d.date} | {d.status} |\n" for d in found)
    return HEAD + "".join(rows)


def main() -> int:
    """Write the page, or say whether it is current."""
    try:
        text = page(decisions())
    except BadDecision as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return write_or_check(PAGE, text)


if __name__ == "__main__":
    sys.exit(main())
