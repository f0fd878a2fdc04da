"""Which providers are asked: those that a worker serves, or served a moment ago (G9)."""

import pytest
from memorybus.recall.provider_lookup import split_by_worker
from memorybus.registry.roster import ProviderInfo, WorkerInfo

NOW = 1_000_000_000
MINUTE = 60_000


def info(seen_at: int = NOW) -> ProviderInfo:
    """Return what a worker has registered of a provider."""
    return ProviderInfo("kind", "keyed", "shared", seen_at=seen_at)


def worker(*providers: str, jobs: int = 1) -> WorkerInfo:
    """Return the heartbeat of a worker."""
    return WorkerInfo("w", "h", 1, 0, jobs, providers, NOW)


@pytest.mark.parametrize(
    ("case", "seen_b", "alive", "running", "expected"),
    [
        ("both are served", NOW, [worker("a", "b")], ["a", "b"], ["a", "b"]),
        ("b's worker is replaced, a's is not", NOW, [worker("a")], ["a"], ["a", "b"]),
        ("all workers are replaced", NOW, [], [], ["a", "b"]),
        ("b has not been served for long", NOW - 6 * MINUTE, [worker("a")], ["a"], ["a"]),
        (
            "only who answers is replaced",
            NOW,
            [worker("a", "b", jobs=0)],
            [],
            ["a", "b"],
        ),
        ("a stranger is no provider", NOW, [worker("a", "x")], ["a"], ["a", "b"]),
    ],
)
def test_a_provider_whose_worker_is_replaced_is_asked_all_the_same(
    case: str, seen_b: int, alive: list[WorkerInfo], running: list[str], expected: list[str]
) -> None:
    """G9: what is asked while a worker is replaced waits for the next one, and is not left out."""
    known = {"a": info(), "b": info(seen_b)}
    assert split_by_worker(known, alive, NOW) == (running, expected), case
