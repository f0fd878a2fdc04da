"""Decides how long an embedder that failed is not asked; pure."""

FIRST_PAUSE = 1.0

LONGEST_PAUSE = 300.0
"""Seconds without a request after a failure, doubled with each further failure, and the most."""


def pause_after(failures: int) -> float:
    """Return the seconds without a request after `failures` failures in a row."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, 30))
