"""How long the fault suite runs, and its seed: from the environment, shown by every run.

``QUICK=1`` runs one round of each row, as CI does; ``SHARE`` (above 0, at most 1) runs each row in
its long form at that share of its counts; neither runs all of them. ``SEED`` repeats a run's
choices, ``MINUTES`` says how long the soak lasts.
"""

import math
import os
import random
import secrets
from typing import Final

HALF_AN_HOUR = 30.0


def share_of(text: str, *, quick: bool) -> float:
    """Return the share that `SHARE` asks for: all of a row's counts if it is empty.

    Raises:
        ValueError: it is no share, or there is none to take, for `QUICK` is set too.
    """
    if not text:
        return 1.0
    if quick:
        raise ValueError("QUICK=1 runs one round of each row, and takes no SHARE: leave one out")
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise ValueError(
            f"SHARE={text} is no share of a row's counts: give a number above 0 and at most 1, "
            f"for example: make faults SHARE=0.25"
        )
    return share


def _given() -> float:
    try:
        return share_of(os.environ.get("SHARE", ""), quick=QUICK)
    except ValueError as error:
        raise SystemExit(str(error)) from None


QUICK: Final = os.environ.get("QUICK", "") not in ("", "0")
SHARE: Final = _given()
SEED: Final = int(os.environ.get("SEED") or secrets.randbelow(1_000_000))
MINUTES: Final = float(os.environ.get("MINUTES") or HALF_AN_HOUR)
os.environ["SEED"] = str(SEED)  # the processes of pytest-xdist share it


def times(full: int, quick: int = 1) -> int:
    """Return how often a row does something: `quick` times in CI, else its share of `full`."""
    return quick if QUICK else math.ceil(round(full * SHARE, 6))


def rounds(full: int) -> list[int]:
    """Return the numbers of a row's rounds: one of them in CI, else its share of `full`."""
    return list(range(times(full)))


def chances(*names: str) -> random.Random:
    """Return the random choices of one test of this run."""
    return random.Random(f"{SEED}:{':'.join(names)}")


def spread(rng: random.Random, least: float, most: float) -> float:
    """Return a duration: the least in CI, anything up to the most else."""
    return least if QUICK else rng.uniform(least, most)


def told() -> str:
    """Return in words how much of each row this run does, and how to repeat it."""
    how = "QUICK=1" if QUICK else f"SHARE={SHARE:g}"
    return f"fault suite: {how} SEED={SEED}"
