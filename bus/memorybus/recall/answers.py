"""Answers a prompt with warm answers, with answers that providers give now, or with related lines.

1. A provider whose answer to this very prompt is warm is not asked: reading the answer is enough.
2. All other providers are asked at once. The prompt waits for them, at most as long as its caller
   says.
3. If a provider is late or has no worker, the prompt gets only those of its warm lines that are
   related to the prompt (`lines.relevant_lines`).
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from memorybus.clock import Clock
from memorybus.ids import text_digest
from memorybus.recall.asking import Replies
from memorybus.recall.cache import WarmCache
from memorybus.recall.health import MAX_COUNTED, Counted
from memorybus.recall.lines import relevant_lines, unseen_by_provider
from memorybus.recall.model import WarmAsk, WarmResult

Lines = tuple[str, ...]
_MOST_SEEN = 0.5
"""If the window holds more than this share of a budget, providers are asked for more."""


class RecallQuestion(msgspec.Struct, frozen=True):
    """What a session asks of memory for a prompt."""

    keys: Sequence[str]  # where its warm results are (`WarmCache.keys`)
    # the words to ask; "" asks for what matters most about the person, and None for everything that
    # is warm, without asking anybody
    text: str | None
    # makes the request for providers from these words, if one has to be asked
    build: Callable[[str], WarmAsk]
    window: str = ""  # what the model sees anyway (`lines.window_text`)


class Answer(msgspec.Struct):
    """The answer to a question, and how it came."""

    lines: dict[str, Lines]  # each provider's escaped lines; a provider without lines is left out
    # the results that were warm for this very question, by provider
    ready: Mapping[str, WarmResult] = {}
    # what the providers that were asked have answered in time
    replies: Replies = msgspec.field(default_factory=Replies)
    waited_ms: int = 0  # how long it waited for them
    results: list[WarmResult] = []  # all results from which lines may come


class ProviderAsker(Protocol):
    """Asks providers now; `asking.PromptAsker` is one."""

    recalling: frozenset[str]  # the providers that answered recalls at the last look-up

    def ask(self, question: WarmAsk, wait: float, there: Collection[str]) -> Replies: ...


class SessionRecall:
    """Answers questions, and counts how they were answered. Safe to call from any thread."""

    def __init__(self, warm: WarmCache, asker: ProviderAsker, clock: Clock) -> None:
        # The counts that `health.report_counts` has not added to Redis yet. A prompt is counted
        # without a lock, so that a signal handler and a fork may count as well.
        self.counted: deque[Counted] = deque(maxlen=MAX_COUNTED)
        self.failures = 0  # how many prompts were answered without something that they asked for
        # how many of these prompts lacked what: the answer of the provider of this name, which
        # failed, was late or is paused, or ``redis``, which could not be read or did not take the
        # question
        self.failed: Counter[str] = Counter()
        self._warm = warm
        self._asker = asker
        self._clock = clock

    def answer(self, question: RecallQuestion, wait: float) -> Answer:
        """Return the answer to a question within `wait` seconds (G9).

        Lines that the prompt's window holds are left out; if they are most of a block, others are
        asked for.
        """
        read = self._warm.read(question.keys)
        warm = read or {}
        if question.text is None:
            answer = Answer(
                {name: result.lines for name, result in warm.items() if result.lines}, warm
            )
        else:
            answer = self._combine(question.text, question.build, warm, wait)
        answer.results += warm.values()
        replies = answer.replies
        redis_failed = read is None or replies.unsent
        if redis_failed or replies.asked or replies.paused:
            self._count_failures(replies, redis_failed=redis_failed)
        if question.window:
            self._leave_out_known(answer, question, wait - answer.waited_ms / 1000)
        return answer

    def _count_failures(self, replies: Replies, *, redis_failed: bool) -> None:
        wanted = replies.paused.union(replies.asked or ())
        failed = wanted - replies.answered().keys() if wanted else wanted
        if redis_failed:
            failed |= {"redis"}
        self.failures += bool(failed)
        self.failed.update(failed)

    def _combine(
        self,
        text: str,
        build: Callable[[str], WarmAsk],
        warm: Mapping[str, WarmResult],
        wait: float,
    ) -> Answer:
        """Return what is warm for a text, what providers answer now, and related lines."""
        asked = text_digest(text)
        ready = {name: result for name, result in warm.items() if result.asked == asked}
        answer = Answer(
            {name: result.lines for name, result in ready.items() if result.lines}, ready
        )
        if not ready or len(ready) < len(warm) or not ready.keys() >= self._asker.recalling:
            began = self._clock.monotonic()
            answer.replies = self._asker.ask(build(text), wait, ready.keys())
            answer.waited_ms = round((self._clock.monotonic() - began) * 1000)
            results = answer.replies.answered()
            answer.results += results.values()
            answer.lines |= {name: result.lines for name, result in results.items() if result.lines}
            answer.lines |= _related_lines(text, warm, ready.keys() | results.keys())
        self.counted.extend(_amounts(answer))
        return answer

    def _leave_out_known(self, answer: Answer, question: RecallQuestion, wait: float) -> None:
        """Leave out lines that the window holds; if they are many, ask for others in their room."""
        held = _size(answer.lines)
        answer.lines = unseen_by_provider(answer.lines, question.window)
        seen = held - _size(answer.lines)
        if not seen or question.text is None:
            return
        request = question.build(question.text)
        if seen > request.want.budget * _MOST_SEEN:
            wider = msgspec.structs.replace(request.want, budget=request.want.budget + seen)
            request = msgspec.structs.replace(request, want=wider)
            more = self._combine(question.text, lambda _: request, {}, wait)
            answer.lines |= unseen_by_provider(more.lines, question.window)
            answer.results += more.results


def _amounts(answer: Answer) -> list[Counted]:
    amounts = [(name, "warm", 1) for name in answer.ready]
    amounts += [(name, "nothing", 1) for name, result in answer.ready.items() if not result.lines]
    for name in answer.replies.asked or ():
        result = answer.replies.results.get(name)
        amounts.append((name, "late" if result is None else "fresh", 1))
        amounts.append((name, "nothing", int(result is not None and not result.lines)))
        amounts.append((name, "waited_ms", answer.waited_ms))
    return amounts


def _size(lines: Mapping[str, Lines]) -> int:
    return sum(len(text) for texts in lines.values() for text in texts)


def _related_lines(
    text: str, warm: Mapping[str, WarmResult], answered: Collection[str]
) -> Iterator[tuple[str, Lines]]:
    """Yield warm lines of the providers that did not answer, as far as they suit this text.

    A prompt without text asks for what matters most about the person: then all warm lines suit.
    """
    for name, result in warm.items():
        if name not in answered:
            lines = relevant_lines(result.lines, text) if text else result.lines
            if lines:
                yield name, lines
