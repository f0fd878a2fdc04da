"""Reconcile a Hermes ``state.db`` of 100,000 messages: messages a second, and peak memory.

    python bench/hermes/reconcile.py [messages]

Synthetic: turns of some 550 bytes, 100 turns to a session, no tools, with Hermes's own schema and
indexes. Measured are an import into an empty log, a second run that finds everything there, and a
dry run of a file of a fiftieth, whose peak is what the process takes anyway. Each runs in a process
of its own, as `memorybus hermes reconcile` does; the clock is around the process.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from helpers.hermes import hermes_state
from memorybus.config.settings import Settings, to_environ
from stage import Stage

MESSAGES = 100_000
_PROGRAM = """
import resource, sys
from memorybus_console.cli.app import main
code = main()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, file=sys.stderr)
sys.exit(code)
"""


class Run(msgspec.Struct, frozen=True):
    """One run: seconds, peak of resident memory in bytes, and the report."""

    seconds: float
    peak: int
    report: dict[str, Any]


def measure(messages: int = MESSAGES) -> dict[str, float]:
    """Return the figures, by name."""
    with Stage() as stage:
        homes = {count: stage.data_dir / f"hermes{count}" for count in (messages // 50, messages)}
        for count, home in homes.items():
            hermes_state.big(home, count)
        small = _run(stage.settings, homes[messages // 50])
        first = _run(stage.settings, homes[messages], "--apply")
        again = _run(stage.settings, homes[messages], "--apply")
    if (first.report["published"], again.report["published"]) != (messages // 2, 0):
        raise RuntimeError(f"not reconciled: {first.report} {again.report}")
    return {
        "hermes_reconcile_messages": messages,
        "hermes_reconcile_import_s": first.seconds,
        "hermes_reconcile_import_per_s": messages / first.seconds,
        "hermes_reconcile_again_s": again.seconds,
        "hermes_reconcile_peak_mb": first.peak / 1e6,
        "hermes_reconcile_again_peak_mb": again.peak / 1e6,
        "hermes_reconcile_small_peak_mb": small.peak / 1e6,
    }


def _run(settings: Settings, home: Path, *words: str) -> Run:
    command = [sys.executable, "-c", _PROGRAM, "hermes", "reconcile", "--json", *words]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "--home", str(home)],
        env=to_environ(settings),
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    if done.returncode:
        raise RuntimeError(done.stderr)
    return Run(seconds, int(done.stderr.split()[-1]), json.loads(done.stdout))


if __name__ == "__main__":
    figures = measure(int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES)
    print(json.dumps(figures, indent=2))
