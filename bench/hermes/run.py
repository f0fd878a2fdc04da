"""The real Hermes Agent with memorybus, and without: a table, and ``bench/out/hermes.json``.

``python bench/hermes/run.py [--quick] [--only NAME …]``. Hermes runs from ``.hermes-venv-0.22.2``
(``make hermes-venv``), offline against a scripted model; what each part measures stands in its
module, and its figures in bench/README.md. Exit codes: 0 measured, 1 a part failed.
"""

import argparse
import importlib
import json
import logging
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

OUT = Path(__file__).resolve().parents[1] / "out" / "hermes.json"
PARTS = {
    "hermes_hooks": "hermes.hooks",
    "hermes_turns": "hermes.turns",
    "hermes_exit": "hermes.exit",
    "hermes_kills": "hermes.kills",
}
"""Each part's name, and the module that measures it."""

Figures = dict[str, float]


class Size(msgspec.Struct, frozen=True):
    """How much is done.

    Attributes:
        rounds: rounds of hooks in each state of Redis.
        turns: turns with and without memory.
        exits: how often each kind of exit is measured.
        kills: how many Hermes processes are killed, each with and without the bus.
    """

    rounds: int
    turns: int
    exits: int
    kills: int


QUICK = Size(rounds=200, turns=20, exits=2, kills=6)
FULL = Size(rounds=2_000, turns=150, exits=5, kills=200)


def run(names: list[str], size: Size, console: Console) -> tuple[Figures, dict[str, str]]:
    """Run parts one after another; return their figures, and errors by part."""
    figures: Figures = {}
    errors: dict[str, str] = {}
    for name in names:
        began = time.perf_counter()
        with console.status(f"measuring {name}"):
            try:
                figures |= importlib.import_module(PARTS[name]).measure(size)
            except Exception as error:
                errors[name] = f"{type(error).__name__}: {error}"
        console.print(f"[dim]{name}: {time.perf_counter() - began:.1f} s[/dim]")
    return figures, errors


def table(figures: Figures) -> Table:
    """Return what is printed."""
    shown = Table(title="Hermes Agent with memorybus")
    shown.add_column("figure", no_wrap=True)
    shown.add_column("value", justify="right", no_wrap=True)
    for name, value in figures.items():
        shown.add_row(name, f"{value:,.3g}" if value < 1_000 else f"{value:,.0f}")
    return shown


def main() -> int:
    """Parse the arguments, run, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few minutes")
    parser.add_argument(
        "--only", action="append", choices=PARTS, metavar="NAME", help=", ".join(PARTS)
    )
    options = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    console = Console()
    load = os.getloadavg()[0]
    console.print(f"{os.cpu_count()} cores, load {load:.2f}")
    size = QUICK if options.quick else FULL
    figures, errors = run(options.only or list(PARTS), size, console)
    console.print(table(figures))
    for name, error in errors.items():
        console.print(f"[red]ERROR[/red] {name}: {escape(error)}")
    OUT.parent.mkdir(exist_ok=True)
    everything = figures | {"load_1m_before": load, "cores": float(os.cpu_count() or 0)}
    OUT.write_text(json.dumps(everything, indent=1) + "\n")
    console.print(f"written: {OUT}")
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())
