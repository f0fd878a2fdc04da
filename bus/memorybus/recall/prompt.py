"""Answers a prompt with warm answers, with answers that providers give now, or with related lines.

1. A provider whose answer to this very prompt is warm is not asked: reading the answer is enough.
2. All other providers are asked at once. The prompt waits for them, at most as long as its caller
   says.
3. If a provider is late or has no worker, the prompt gets only those of its warm lines that are
   related to the prompt (`relevance`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Protocol

import msgspec

from memorybus.clock import Clock
from memorybus.recall.counts import PromptCounter
from memorybus.recall.fresh import FreshAnswers
from memorybus.recall.model import WarmAsk, WarmResult
from memorybus.recall.relevance import relevant_lines
from memorybus.recall.window import unseen_by_provider

Lines = tuple[str, ...]

_MOST_SEEN = 0.5
"""If the window holds more than this share of a budget, providers are asked for more."""


class Prompt(msgspec.Struct, frozen=True):
    """A prompt that is to be answered.

    Attributes:
        text: what the person said; "" asks for what matters most about the person.
        digest: the digest of `text`; a warm result names the question it answers by it.
        question: makes the question for providers, if one has to be asked.
        window: what the model sees anyway (`window_text`).
    """

    text: str
    digest: str
    question: Callable[[], WarmAsk]
    window: str = ""


class PromptAsker(Protocol):
    """Asks providers now; `fresh.FreshRecalls` is one."""

    def recalling_providers(self) -> frozenset[str]:
        """See `FreshRecalls.recalling_providers`."""
        ...

    def ask(self, question: WarmAsk, wait: float, there: frozenset[str]) -> FreshAnswers:
        """See `FreshRecalls.ask`."""
        ...


class PromptAnswers:
    """Answers prompts, and counts how they were answered. Safe to call from any thread.

    Args:
        fresh: asks providers now.
        counter: counts the answers.
        clock: time.
    """

    def __init__(self, fresh: PromptAsker, counter: PromptCounter, clock: Clock) -> None:
        """Prepare; no provider is asked yet."""
        self._fresh = fresh
        self._counter = counter
        self._clock = clock

    def lines(
        self, prompt: Prompt, warm: Mapping[str, WarmResult], wait: float
    ) -> dict[str, Lines]:
        """Return each provider's escaped lines for a prompt; a provider without lines is left out.

        Lines that the prompt's window holds are left out. If they are most of a block, the
        providers are asked for as much again, within the same wait.

        Args:
            prompt: the prompt.
            warm: the warm results of its session, by provider.
            wait: seconds, at most (G9).
        """
        began = self._clock.monotonic()
        lines = self._answer(prompt, warm, wait)
        if not prompt.window:
            return lines
        unseen = unseen_by_provider(lines, prompt.window)
        seen = _size(lines) - _size(unseen)
        if not seen or seen <= (want := prompt.question().want).budget * _MOST_SEEN:
            return unseen
        wider = _with_budget(prompt, want.budget + seen)
        more = self._answer(wider, {}, wait - (self._clock.monotonic() - began))
        return unseen | unseen_by_provider(more, prompt.window)

    def _answer(
        self, prompt: Prompt, warm: Mapping[str, WarmResult], wait: float
    ) -> dict[str, Lines]:
        there = {name: result for name, result in warm.items() if result.asked == prompt.digest}
        lines = self._count_warm(there)
        if there and len(there) == len(warm) and there.keys() >= self._fresh.recalling_providers():
            return lines
        began = self._clock.monotonic()
        fresh = self._fresh.ask(prompt.question(), wait, frozenset(there))
        lines |= self._count_fresh(fresh, round((self._clock.monotonic() - began) * 1000))
        answered = {name for name, result in fresh.results.items() if result is not None}
        return lines | dict(_related_lines(prompt, warm, there.keys() | answered))

    def _count_warm(self, there: Mapping[str, WarmResult]) -> dict[str, Lines]:
        """Return the lines of warm answers to this very prompt, and count these answers."""
        lines: dict[str, Lines] = {}
        for name, result in there.items():
            if result.lines:
                lines[name] = result.lines
            self._counter.count(name, "warm", nothing=not result.lines)
        return lines

    def _count_fresh(self, fresh: FreshAnswers, waited_ms: int) -> dict[str, Lines]:
        """Return the lines of the providers that answered now, and count how each one answered."""
        lines: dict[str, Lines] = {}
        for name in fresh.asked or ():
            answer = fresh.results.get(name)
            if answer is None:
                self._counter.count(name, "late", nothing=False, waited_ms=waited_ms)
            else:
                lines[name] = answer.lines
                self._counter.count(name, "fresh", nothing=not answer.lines, waited_ms=waited_ms)
        return {name: given for name, given in lines.items() if given}


def _with_budget(prompt: Prompt, budget: int) -> Prompt:
    question = prompt.question()
    want = msgspec.structs.replace(question.want, budget=budget)
    asked = msgspec.structs.replace(question, want=want)
    return msgspec.structs.replace(prompt, question=lambda: asked)


def _size(lines: Mapping[str, Lines]) -> int:
    return sum(len(text) for given in lines.values() for text in given)


def _related_lines(
    prompt: Prompt, warm: Mapping[str, WarmResult], answered: Collection[str]
) -> Iterator[tuple[str, Lines]]:
    """Yield warm lines of the providers that did not answer, as far as they suit this prompt.

    A prompt without text asks for what matters most about the person: then all warm lines suit.
    """
    for name, result in warm.items():
        if name not in answered:
            lines = relevant_lines(result.lines, prompt.text) if prompt.text else result.lines
            if lines:
                yield name, lines
