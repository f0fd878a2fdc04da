"""How a provider's part in a prompt is told."""

import pytest
from memorybus.recall.health import RecentRecalls
from memorybus.recall.model import WarmResult
from memorybus_console.operations.preview.patient_asker import TimedReply
from memorybus_console.operations.preview.provider_answer import ProviderAnswer, describe_answer

HEALTHY = RecentRecalls()
TWO = WarmResult(lines=("a", "b"))


def answer(
    *,
    ready: WarmResult | None = None,
    asked: bool = False,
    reply: TimedReply | None = None,
    health: RecentRecalls = HEALTHY,
) -> ProviderAnswer:
    """Return a provider's part, of which one memory stands in the block."""
    return describe_answer("one", ready=ready, asked=asked, reply=reply, given=1, health=health)


def test_an_answer_that_was_ready_took_no_time() -> None:
    """A warm answer counts before anything that happened to the provider since."""
    paused = RecentRecalls(paused=True, error="down")
    assert answer(ready=TWO, health=paused) == ProviderAnswer("one", "warm", 0.0, 2, 1)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (TimedReply(TWO, 0.0123, in_time=True), ProviderAnswer("one", "fresh", 12.3, 2, 1)),
        (TimedReply(TWO, 2.5, in_time=False), ProviderAnswer("one", "late", 2500.0, 2, 1)),
        (
            TimedReply(None, 0.5, in_time=True),
            ProviderAnswer("one", "failed", 500.0, given=1, why="its recall failed"),
        ),
        (
            None,
            ProviderAnswer("one", "late", given=1, why="no answer for as long as was waited"),
        ),
    ],
)
def test_what_was_asked_is_told_by_its_reply(
    reply: TimedReply | None, told: ProviderAnswer
) -> None:
    """In time, too late, failed and silent are four things; a silent one has no time."""
    assert answer(asked=True, reply=reply) == told


def test_a_failure_is_told_with_its_reason() -> None:
    """What is known of a provider's last failure stands beside a failed recall, and a pause."""
    known = RecentRecalls(error="no such table", paused=True)
    failed = answer(asked=True, reply=TimedReply(None, 0.5, in_time=True), health=known)
    assert (failed.outcome, failed.why) == ("failed", "no such table")
    paused = answer(health=known)
    assert (paused.outcome, paused.ms, paused.why) == ("paused", None, "no such table")


def test_a_provider_without_a_worker_says_so() -> None:
    """Who was not asked and does not pause has nobody to answer for it."""
    assert (answer().outcome, answer().why) == ("unserved", "no live worker answers its recalls")
