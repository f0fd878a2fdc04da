"""How long an embedder that failed is left alone; pure."""

FIRST_PAUSE = 1.0

LONGEST_PAUSE = 300.0
"""Seconds without a request after a failure, doubled with each one more."""


def pause_after(failures: int) -> float:
    """Return the seconds without a request after so many failures in a row."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, 30))
