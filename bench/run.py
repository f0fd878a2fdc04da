"""The benchmark suite: a table, and ``bench/out/bench.json``.

``python bench/run.py [--quick] [--only NAME …] [--strict]``. What each part measures stands in its
module, and its figures in bench/README.md. Exit codes: 0 measured, 1 a part failed (or, with
``--strict``, a bound was missed).
"""

import argparse
import importlib
import json
import logging
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
from gauge import BOUNDS, FULL, QUICK, Figures, LeftOut, Size
from rich.console import Console
from rich.markup import escape
from rich.table import Table

OUT = Path(__file__).with_name("out") / "bench.json"

PARTS = {
    "publish": "log.publish",
    "prefetch": "recall.prefetch",
    "fresh": "recall.fresh",
    "this_prompt": "recall.this_prompt",
    "applied": "apply.applied",
    "drain": "apply.drain",
    "memory": "log.memory",
    "extras": "log.extras",
    "rq_threads": "log.rq_threads",
    "slow": "apply.slow",
    "scaling": "apply.scaling",
    "backlog": "apply.backlog",
    "history": "history.replay",
    "archived": "history.archived",
    "search": "history.search",
    "crowd": "stores.crowd",
    "postgres_store": "stores.postgres_store",
    "postgres_scaling": "stores.postgres_scaling",
    "rebuild": "history.rebuild",
    "recovery": "apply.recovery",
    "after_kill": "apply.after_kill",
    "idle": "operate.idle",
    "scrape": "operate.scrape",
    "scraped": "operate.scraped",
    "traced": "operate.traced",
    "page": "operate.page",
    "page_views": "operate.page_views",
    "gateway": "operate.gateway",
    "insights": "operate.insights",
    "peers": "peers",
}
"""Each part's name, and the module that measures it."""


class Outcome(msgspec.Struct, frozen=True):
    """What the parts gave: figures, and by part, errors and why one was left out."""

    figures: Figures
    errors: dict[str, str]
    left_out: dict[str, str]


def run(names: list[str], size: Size, console: Console) -> Outcome:
    """Run parts one after another."""
    figures: Figures = {}
    errors: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for name in names:
        began = time.perf_counter()
        with console.status(f"measuring {name}"):
            try:
                figures |= importlib.import_module(PARTS[name]).measure(size)
            except LeftOut as why:
                left_out[name] = str(why)
            except Exception as error:
                notes = "\n".join(getattr(error, "__notes__", ()))
                errors[name] = f"{type(error).__name__}: {error}\n{notes}".strip()
        console.print(f"[dim]{name}: {time.perf_counter() - began:.1f} s[/dim]")
    return Outcome(figures, errors, left_out)


def table(figures: Figures) -> Table:
    """Return what is printed: bounded figures first, then the rest."""
    shown = Table(title="memorybus benchmarks")
    shown.add_column("figure", no_wrap=True)
    shown.add_column("value", justify="right", no_wrap=True)
    shown.add_column("bound", no_wrap=True)
    shown.add_column("", no_wrap=True)
    for key, bound in BOUNDS.items():
        if key in figures:
            kept = bound.kept(figures[key])
            verdict = "[green]pass[/green]" if kept else "[red]MISS[/red]"
            shown.add_row(key, spelled(figures[key]), str(bound), verdict)
    shown.add_section()
    for key, value in figures.items():
        if key not in BOUNDS:
            shown.add_row(key, spelled(value), "", "")
    return shown


def spelled(value: float) -> str:
    """Return a number for people."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def write(outcome: Outcome, load: float, seconds: float) -> None:
    """Write numbers by figure; a figure named ``group.kind.name`` stands inside its group."""
    everything = outcome.figures | {
        "bounds_missed": float(len(missed(outcome.figures))),
        "parts_failed": float(len(outcome.errors)),
        "parts_left_out": float(len(outcome.left_out)),
        "cores": float(os.cpu_count() or 0),
        "load_1m_before": load,
        "load_1m_after": os.getloadavg()[0],
        "seconds": seconds,
    }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(nested(everything), indent=1) + "\n")


def nested(figures: Figures) -> dict[str, Any]:
    """Return the figures with dotted names as objects in objects."""
    found: dict[str, Any] = {}
    for name, value in figures.items():
        *groups, last = name.split(".")
        place = found
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = value
    return found


def missed(figures: Figures) -> list[str]:
    """Return the figures that miss their bound."""
    return [k for k, bound in BOUNDS.items() if k in figures and not bound.kept(figures[k])]


def main() -> int:
    """Parse the arguments, run, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about three minutes")
    parser.add_argument(
        "--only", action="append", choices=PARTS, metavar="NAME", help=", ".join(PARTS)
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bound is missed")
    parser.add_argument("--past", type=int, metavar="N", help="events of the long history")
    options = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)  # a bus whose Redis is away says so; that is meant
    console = Console()
    load, began = os.getloadavg()[0], time.perf_counter()
    console.print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.2f}; embedded "
        "Redis over its unix socket; every ratio is of one run on one server"
    )
    size = QUICK if options.quick else FULL
    if options.past:
        size = msgspec.structs.replace(size, past=options.past)
    outcome = run(options.only or list(PARTS), size, console)
    console.print(table(outcome.figures))
    for name, error in outcome.errors.items():
        console.print(f"[red]ERROR[/red] {name}: {escape(error)}")
    for name, why in outcome.left_out.items():
        console.print(f"[yellow]LEFT OUT[/yellow] {name}: {escape(why)}")
    write(outcome, load, time.perf_counter() - began)
    console.print(f"written: {OUT}")
    return int(bool(outcome.errors) or (options.strict and bool(missed(outcome.figures))))


if __name__ == "__main__":
    sys.exit(main())
