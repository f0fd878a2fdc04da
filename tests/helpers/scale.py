"""How long the fault suite runs, and its seed: from the environment, shown by every run.

``QUICK=1`` runs one round of each row, as CI does; else the whole suite, of which ``FAULT_SCALE``
(0 to 1) takes a part. ``SEED`` repeats a run's choices.
"""

import os
import random
import secrets
from typing import Final

QUICK: Final = os.environ.get("QUICK", "") not in ("", "0")
SCALE: Final = float(os.environ.get("FAULT_SCALE") or 1)
SEED: Final = int(os.environ.get("SEED") or secrets.randbelow(1_000_000))
os.environ["SEED"] = str(SEED)  # the processes of pytest-xdist share it


def rounds(full: int) -> list[int]:
    """Return the numbers of a row's rounds: one of them in CI, `full` of them else."""
    return [0] if QUICK else list(range(max(1, round(full * SCALE))))


def chances(*names: str) -> random.Random:
    """Return the random choices of one test of this run."""
    return random.Random(f"{SEED}:{':'.join(names)}")


def spread(rng: random.Random, least: float, most: float) -> float:
    """Return a duration: the least in CI, anything up to the most in the whole suite."""
    return least if QUICK else rng.uniform(least, most)
