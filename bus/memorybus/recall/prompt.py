"""The answer to a prompt: what is warm for it, else what providers say now, else what is near.

1. A provider whose answer to this very prompt is warm is not asked: that costs one read.
2. All others are asked at once, and the prompt waits for them, at most as long as its caller says.
3. Of one that was not in time, and of one that nobody serves now, only those warm lines are given
   that have to do with this prompt (`relevance`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Protocol

import msgspec

from memorybus.clock import Clock
from memorybus.recall.counts import PromptCounter
from memorybus.recall.fresh import FreshAnswers
from memorybus.recall.model import WarmAsk, WarmResult
from memorybus.recall.relevance import relevant_lines

Lines = tuple[str, ...]


class Prompt(msgspec.Struct, frozen=True):
    """A prompt that is to be answered.

    Attributes:
        text: what the person said; "" for what matters most of the person.
        digest: of `text`, as a warm result names the question it answers.
        question: makes what to ask, if it must be asked.
    """

    text: str
    digest: str
    question: Callable[[], WarmAsk]


class PromptAsker(Protocol):
    """Asks providers now; `fresh.FreshRecalls` is one."""

    def recalling_providers(self) -> frozenset[str]:
        """See `FreshRecalls.recalling_providers`."""
        ...

    def ask(self, question: WarmAsk, wait: float, there: frozenset[str]) -> FreshAnswers:
        """See `FreshRecalls.ask`."""
        ...


class PromptAnswers:
    """Answers prompts, and counts how. Safe to call from any thread.

    Args:
        fresh: asks providers now.
        counter: counts.
        clock: time.
    """

    def __init__(self, fresh: PromptAsker, counter: PromptCounter, clock: Clock) -> None:
        """Answer nothing yet."""
        self._fresh = fresh
        self._counter = counter
        self._clock = clock

    def lines(
        self, prompt: Prompt, warm: Mapping[str, WarmResult], wait: float
    ) -> dict[str, Lines]:
        """Return each provider's escaped lines for a prompt; a provider without lines is left out.

        Args:
            prompt: what is to be answered.
            warm: what is warm in its session, by provider.
            wait: seconds, at most (G9).
        """
        there = {name: result for name, result in warm.items() if result.asked == prompt.digest}
        if there and there.keys() >= self._fresh.recalling_providers() | warm.keys():
            return self._count_answers(there, FreshAnswers(frozenset()), 0)
        began = self._clock.monotonic()
        fresh = self._fresh.ask(prompt.question(), wait, frozenset(there))
        waited_ms = round((self._clock.monotonic() - began) * 1000)
        lines = self._count_answers(there, fresh, waited_ms)
        answered = {name for name, result in fresh.results.items() if result is not None}
        return lines | dict(_related_lines(prompt, warm, there.keys() | answered))

    def _count_answers(
        self, there: Mapping[str, WarmResult], fresh: FreshAnswers, waited_ms: int
    ) -> dict[str, Lines]:
        """Return the lines of those that answered, and count what became of each."""
        lines: dict[str, Lines] = {}
        for name, result in there.items():
            lines[name] = result.lines
            self._counter.count(name, "warm", nothing=not result.lines)
        for name in fresh.asked or ():
            answer = fresh.results.get(name)
            if answer is None:
                self._counter.count(name, "late", nothing=False, waited_ms=waited_ms)
            else:
                lines[name] = answer.lines
                self._counter.count(name, "fresh", nothing=not answer.lines, waited_ms=waited_ms)
        return {name: given for name, given in lines.items() if given}


def _related_lines(
    prompt: Prompt, warm: Mapping[str, WarmResult], answered: Collection[str]
) -> Iterator[tuple[str, Lines]]:
    """Yield what is warm of the others for another prompt, as far as it has to do with this one.

    What matters most of a person has to do with nothing said, so all that is warm serves.
    """
    for name, result in warm.items():
        if name not in answered:
            lines = relevant_lines(result.lines, prompt.text) if prompt.text else result.lines
            if lines:
                yield name, lines
