"""How a provider's part in a prompt is described."""

import pytest
from memorybus.recall.answers import Answer
from memorybus.recall.asking import Replies
from memorybus.recall.health import RecentRecalls
from memorybus.recall.model import WarmResult
from memorybus_console.operations.preview import ProviderAnswer, describe_answer

HEALTHY = RecentRecalls()
TWO = WarmResult(lines=("a", "b"))
BLOCK = "<\na\n>"
"""A block that shows one of the two lines."""


def described(answer: Answer, health: RecentRecalls = HEALTHY) -> ProviderAnswer:
    """Return a provider's part, of which one memory stands in the block."""
    answer.lines = {"one": TWO.lines}
    return describe_answer("one", answer, BLOCK, health)


def asked(results: dict[str, WarmResult | None]) -> Answer:
    """Return the answer after a provider was asked, and answered or did not."""
    seconds = dict.fromkeys(results, 0.0123)
    return Answer({}, replies=Replies(frozenset({"one"}), results, seconds, ended=True))


def test_an_answer_that_was_ready_took_no_time():
    """A warm answer counts before anything that happened to the provider since."""
    paused = RecentRecalls(paused=True, error="down")
    answer = Answer({}, ready={"one": TWO})
    assert described(answer, paused) == ProviderAnswer("one", "warm", 0.0, 2, 1)


@pytest.mark.parametrize(
    ("results", "part"),
    [
        ({"one": TWO}, ProviderAnswer("one", "fresh", 12.3, 2, 1)),
        ({"one": None}, ProviderAnswer("one", "failed", 12.3, given=1, why="its recall failed")),
        ({}, ProviderAnswer("one", "late", given=1, why="no answer in time")),
    ],
)
def test_what_was_asked_is_described_by_its_reply(results, part):
    """An answer in time, a failure and a late provider are three things; the last has no time."""
    assert described(asked(results)) == part


def test_a_failure_is_described_with_its_reason():
    """What is known of a provider's last failure stands beside a failed recall, and a pause."""
    known = RecentRecalls(error="no such table", paused=True)
    failed = described(asked({"one": None}), known)
    assert (failed.outcome, failed.why) == ("failed", "no such table")
    paused = described(Answer({}), known)
    assert (paused.outcome, paused.ms, paused.why) == ("paused", None, "no such table")


def test_a_provider_without_a_worker_says_so():
    """Who was not asked and does not pause has nobody to answer for it."""
    part = described(Answer({}))
    assert (part.outcome, part.why) == ("unserved", "no live worker answers its recalls")
