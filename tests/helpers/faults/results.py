"""What the rows of the fault suite counted, one line of JSON for each row.

The rounds of a row are put together; a row that runs again replaces its line.
"""

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from helpers.faults.oracle import Verdict

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "bench" / "out" / "faults.jsonl"

Range = tuple[float, float]
"""The least and the most of a measure among the rounds."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What one round of a row counted.

    Attributes:
        row: the row, in words.
        share: the share of its counts that the run did.
        faults: how many faults fired, or how often the case was tried.
        events: how many were accepted; None if the row does not count them.
        lost: how many of those are nowhere (G1); None if it does not say.
        twice: how many effects there were too many (G4); None if it does not say.
        besides: other counts (whole numbers, which add up) and measures (which do not).
        passed: whether the row held.
    """

    row: str
    share: float = 1.0
    faults: int = 0
    events: int | None = None
    lost: int | None = None
    twice: int | None = None
    besides: dict[str, int | float] = {}
    passed: bool = False


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the file: its rounds together, on which commit, when."""

    row: str
    share: float
    rounds: int
    failed: int
    faults: int
    events: int | None
    lost: int | None
    twice: int | None
    besides: dict[str, int | Range]
    commit: str
    day: str
    seed: int


def counted(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Return what a run did to its events, over all of its providers."""
    found = list(verdicts)
    return {
        "events": max(verdict.accepted for verdict in found),
        "lost": sum(len(verdict.lost) for verdict in found),
        "twice": sum(verdict.repeats for verdict in found),
    }


def together(rounds: Iterable[Round], commit: str, day: str, seed: int) -> list[Line]:
    """Put the rounds of each row together."""
    by_row: dict[str, list[Round]] = defaultdict(list)
    for one in rounds:
        by_row[one.row].append(one)
    return [
        Line(
            row=row,
            share=min(one.share for one in found),
            rounds=len(found),
            failed=sum(not one.passed for one in found),
            faults=sum(one.faults for one in found),
            events=_total(one.events for one in found),
            lost=_total(one.lost for one in found),
            twice=_total(one.twice for one in found),
            besides=_besides(found),
            commit=commit,
            day=day,
            seed=seed,
        )
        for row, found in by_row.items()
    ]


def _total(counts: Iterable[int | None]) -> int | None:
    """Add up what was counted; None if nothing was: no zero that nobody counted."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _besides(rounds: Sequence[Round]) -> dict[str, int | Range]:
    values: dict[str, list[int | float]] = defaultdict(list)
    for one in rounds:
        for name, value in one.besides.items():
            values[name].append(value)
    return {name: _summed(found) for name, found in values.items()}


def _summed(values: Sequence[int | float]) -> int | Range:
    whole = [value for value in values if isinstance(value, int)]
    if len(whole) == len(values):
        return sum(whole)
    return round(min(values), 3), round(max(values), 3)


def write(lines: Sequence[Line], path: Path = RESULTS) -> None:
    """Put lines into the file; those of other rows stay."""
    kept = {line.row: line for line in read(path)} | {line.row: line for line in lines}
    path.parent.mkdir(parents=True, exist_ok=True)
    encoder = msgspec.json.Encoder()
    path.write_bytes(encoder.encode_lines([kept[row] for row in sorted(kept)]))


def read(path: Path = RESULTS) -> list[Line]:
    """Return the file's lines; none if there is no file."""
    if not path.exists():
        return []
    return msgspec.json.Decoder(Line).decode_lines(path.read_bytes())


def commit() -> str:
    """Return the commit that is checked out, with a mark if the files are not as it has them."""
    words = ["git", "describe", "--always", "--dirty=, changed", "--exclude=*"]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def shown(line: Line, *, quick: bool) -> str:
    """Return a line for people; the short form does no share of a row's counts."""
    figures: dict[str, Any] = {
        "rounds": line.rounds,
        "faults": line.faults,
        "events": line.events,
        "lost": line.lost,
        "twice": line.twice,
        **line.besides,
    }
    failed = f"{line.failed} of them FAILED, " if line.failed else ""
    known = {name: value for name, value in figures.items() if value is not None}
    told = ", ".join(f"{name} {_told(value)}" for name, value in known.items())
    how = "short form" if quick else f"share {line.share:g}"
    return f"{line.row}: {failed}{how}, {told}"


def _told(value: Any) -> str:
    return f"{value[0]:g} to {value[1]:g}" if isinstance(value, tuple) else f"{value:,}"
