"""The doctor on recalls: what is said when they fail or pile up, and what to do."""

from typing import Any

import msgspec
import pytest
from memorybus.health.recalls import JobsStatus
from memorybus.operations.doctor.recalls import recalls
from memorybus.recall.queue import LIFE, LONGEST
from memorybus.text.display import iso

NOW = 1_700_000_000_000
WELL = JobsStatus(
    queue="mb-recall-rec",
    queued=0,
    started=0,
    failed=0,
    oldest_at=None,
    failing=0,
    skipped=0,
    paused=False,
    failed_at=None,
    error="",
)


def with_(**changed: Any) -> JobsStatus:
    """Return a queue's status that differs from one that is well."""
    return msgspec.structs.replace(WELL, **changed)


@pytest.mark.parametrize(
    ("jobs", "ok", "said", "fix"),
    [
        ((), True, "none wait", ""),
        ((WELL,), True, "none wait", ""),
        ((WELL, with_(queued=3, oldest_at=iso(NOW - 1_000))), True, "3 wait", ""),
        ((with_(failed=9),), True, "none wait", ""),
        (
            (WELL, with_(failing=1, error="Unavailable: down")),
            True,
            "mb-recall-rec: 1 failed in a row, the last with: Unavailable: down",
            "look at the backend",
        ),
        ((with_(failing=5, paused=True, error="x"),), False, "asking pauses", "backend"),
        ((with_(failing=3, error="x"),), False, "3 failed in a row, the last", "backend"),
        ((with_(queued=LONGEST),), False, "too many wait", "--jobs"),
        ((with_(queued=1, oldest_at=iso(NOW - LIFE * 900)),), False, "(1 wait)", "--jobs"),
    ],
)
def test_recalls_that_fail_or_pile_up_are_told(
    jobs: tuple[JobsStatus, ...], ok: bool, said: str, fix: str
) -> None:
    """G10: failures warn, and fail the check from the third on; a pile names the remedy."""
    check = recalls(jobs, NOW)
    assert check.ok is ok
    assert said in check.found
    assert fix in check.fix
    assert bool(check.fix) is bool(fix)
