"""Asks a prompt's providers as an agent does, and keeps listening for late answers."""

import msgspec
from memorybus.clock import Clock
from memorybus.ids import new_id
from memorybus.recall.exchange import PromptExchange
from memorybus.recall.fresh import FreshAnswers
from memorybus.recall.model import WarmAsk, WarmResult


class TimedReply(msgspec.Struct, frozen=True):
    """A reply: its result (None for a failure), the seconds until it came, and whether in time."""

    result: WarmResult | None
    after: float
    in_time: bool


class PatientAsker:
    """A `recall.prompt.PromptAsker` that keeps listening when the prompt would not wait any more.

    Attributes:
        asked: the providers that it asked.
        replies: the replies, by provider.
        waited_seconds: seconds for which the prompt would have waited.

    Args:
        exchange: the connections.
        clock: time.
        timeout: seconds for which it listens.
    """

    def __init__(self, exchange: PromptExchange, clock: Clock, timeout: float) -> None:
        """Prepare; no provider is asked yet."""
        self.asked: frozenset[str] = frozenset()
        self.replies: dict[str, TimedReply] = {}
        self.waited_seconds = 0.0
        self._exchange = exchange
        self._clock = clock
        self._timeout = timeout

    def recalling_providers(self) -> frozenset[str]:
        """Return the providers that answer recalls now."""
        return frozenset(self._exchange.answering.current().recalling)

    def ask(self, question: WarmAsk, wait: float, there: frozenset[str]) -> FreshAnswers:
        """Ask all providers, listen until all have answered, and return the replies in time."""
        self.asked = self.recalling_providers() - there
        if self.asked:
            self._listen(question, wait)
        in_time = {name: one.result for name, one in self.replies.items() if one.in_time}
        last = max((one.after for one in self.replies.values()), default=0.0)
        self.waited_seconds = min(wait, last) if self.asked <= in_time.keys() else wait
        return FreshAnswers(self.asked, in_time, ended=True)

    def _listen(self, question: WarmAsk, wait: float) -> None:
        began = self._clock.monotonic()
        ask = self._exchange.ask(question, self.asked, new_id(), self._timeout)
        until = began + self._timeout
        while not self.asked <= self.replies.keys() and self._clock.monotonic() < until:
            reply = self._exchange.await_reply(ask, until - self._clock.monotonic())
            if reply is not None and reply.provider in self.asked:
                after = self._clock.monotonic() - began
                self.replies[reply.provider] = TimedReply(reply.result, after, after <= wait)
