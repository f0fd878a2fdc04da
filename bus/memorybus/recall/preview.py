"""Shows an operator what a prompt would be given now: the block, and each provider's part in it.

It asks as an agent's session does (`recall.prompt`), by the same lists and with the same patience,
but listens for longer. So the operator sees which providers are late, and what they would have
said. Nothing is counted, and nothing is kept warm for the session.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Literal

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from memorybus.clock import SYSTEM, Clock
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.events import Scope, SessionRef
from memorybus.history.history import History
from memorybus.ids import new_id, text_digest
from memorybus.query.query import Query
from memorybus.recall.cache import WarmCache
from memorybus.recall.counts import PromptCounter
from memorybus.recall.exchange import PromptExchange
from memorybus.recall.fresh import FreshAnswers
from memorybus.recall.health import RecallHealth
from memorybus.recall.model import (
    RecalledItem,
    RecallRequest,
    WarmAsk,
    WarmResult,
    items_of,
    slot_of,
    written_partitions,
)
from memorybus.recall.prompt import Prompt, PromptAnswers
from memorybus.recall.trivial import is_trivial
from memorybus.redis.connect import connect_redis, translate_redis_error
from memorybus.redis.keys import Keys, owner_slot
from memorybus.registry.roster import Roster
from memorybus.text.cleaning import clean_text
from memorybus.text.fence import build_block, without_repeats

RecallOutcome = Literal["warm", "fresh", "late", "failed", "paused", "unserved"]
"""How a provider answered. ``warm``: its answer was ready; ``fresh``: it came in time; ``late``: it
came too late or not at all; ``failed``: the recall failed; ``paused``: after failures the provider
is not asked for a while; ``unserved``: no worker answers its recalls."""


class Asker(msgspec.Struct, frozen=True):
    """For whom a prompt is asked. None stands for everyone, which only an operator may ask.

    Attributes:
        agent: the agent.
        user: the person.
        workspace: the project; "" for none.
        session: the session, which may have warm answers; "" for a new one.
    """

    agent: str | None = "default"
    user: str | None = "default"
    workspace: str | None = ""
    session: str = ""

    @property
    def scope(self) -> Scope | None:
        """The scope of the asker; None if it asks for several scopes."""
        if self.agent is None or self.user is None or self.workspace is None:
            return None
        return Scope(agent=self.agent, user=self.user, workspace=self.workspace)


class ProviderAnswer(msgspec.Struct, frozen=True):
    """One provider's part in the answer to a prompt.

    Attributes:
        provider: the provider.
        outcome: how it answered.
        ms: how long it took, in milliseconds; None if it was not asked, or did not answer.
        memories: how many memories it returned.
        given: how many of them stand in the block.
        why: why it did not answer; "" if it did.
    """

    provider: str
    outcome: RecallOutcome
    ms: float | None = None
    memories: int = 0
    given: int = 0
    why: str = ""


class PromptPreview(msgspec.Struct, frozen=True):
    """What a prompt would be given.

    Attributes:
        block: the memory block, word for word; "" if there is none.
        answers: each provider's part.
        items: the memories that providers returned, each with why it was found, in the order of
            providers; those that came late are included.
        trivial: whether the prompt asks nothing, so that no provider was asked.
        waited_ms: how long the prompt would have waited.
        patience_ms: how long a prompt waits at most.
    """

    block: str
    answers: tuple[ProviderAnswer, ...] = ()
    items: tuple[RecalledItem, ...] = ()
    trivial: bool = False
    waited_ms: float = 0.0
    patience_ms: float = 0.0


class TimedReply(msgspec.Struct, frozen=True):
    """A reply: the result (None for a failure), after how many seconds, and whether in time."""

    result: WarmResult | None
    after: float
    in_time: bool


class PatientAsker:
    """A `recall.prompt.PromptAsker` that goes on listening when the prompt would not wait any more.

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


def preview_prompt(
    settings: Settings,
    text: str,
    who: Asker,
    *,
    budget: int | None = None,
    timeout: float = 10.0,
    clock: Clock = SYSTEM,
) -> PromptPreview:
    """Ask what a prompt would be given now.

    Args:
        settings: the settings of the bus.
        text: the prompt. A blank one asks for what matters most, as does the first prompt of a
            session that only says "hello".
        who: for whom it asks.
        budget: characters of the block; the setting `recall_budget` if None.
        timeout: seconds for which it waits for late answers.
        clock: time.

    Raises:
        ConfigError: a session is named, but not the one scope that it belongs to.
        LogUnavailable: Redis is away.
    """
    if who.session and who.scope is None:
        raise ConfigError("a session is one agent's with one person: name both")
    query = clean_text(text).strip()
    if query and is_trivial(query):
        return PromptPreview("", trivial=True)
    redis = connect_redis(settings)
    try:
        return _PromptPreviewer(redis, settings, clock).run(query, who, budget, timeout)
    except (RedisError, OSError) as error:
        raise translate_redis_error(error, redacted(settings.redis_url)) from error
    finally:
        redis.close()


class _PromptPreviewer:
    """Asks one question. Belongs to one thread."""

    def __init__(self, redis: Redis, settings: Settings, clock: Clock) -> None:
        self._redis = redis
        self._settings = settings
        self._clock = clock
        self._keys = Keys(settings.namespace)

    def run(self, query: str, who: Asker, budget: int | None, timeout: float) -> PromptPreview:
        settings = self._settings
        room = settings.recall_budget if budget is None else budget
        session = self._find_session(who)
        warm, order = self._read_warm(who.scope, session)
        slot = text_digest(new_id())  # a slot of our own: the session's answers stay as they are
        question = self._build_question(query, who, session, slot, room)
        exchange = PromptExchange(settings, self._clock)
        asks = PatientAsker(exchange, self._clock, timeout)
        try:
            prompt = Prompt(query, text_digest(query), lambda: question)
            answers = PromptAnswers(asks, PromptCounter(), self._clock)
            lines = answers.lines(prompt, warm, settings.prefetch_wait)
        finally:
            self._redis.delete(self._keys.warm(slot), self._keys.want(slot))
            exchange.close()
        ready = {name: one for name, one in warm.items() if one.asked == prompt.digest}
        block = build_block(without_repeats(order.in_provider_order(lines)), room)
        shown = {name: _count_shown(block, said) for name, said in lines.items()}
        parts = self._describe_providers(asks, ready, shown)
        return PromptPreview(
            block=block,
            answers=parts,
            items=_items(asks, ready, [one.provider for one in parts]),
            waited_ms=round(asks.waited_seconds * 1000, 1),
            patience_ms=round(settings.prefetch_wait * 1000, 1),
        )

    def _build_question(
        self, query: str, who: Asker, session: SessionRef | None, slot: str, room: int
    ) -> WarmAsk:
        want = RecallRequest(query, who.agent, who.user, who.workspace, session, room, detail=True)
        after: tuple[int, ...] = ()
        if session is not None and who.scope is not None:
            after = written_partitions(who.scope, session, self._settings.partitions)
        return WarmAsk(slot, 0, want, after)

    def _find_session(self, who: Asker) -> SessionRef | None:
        """Return a session's newest place; look back only as long as its answers stay warm."""
        if not who.session:
            return None
        oldest = self._clock.now_ms() - round(self._settings.recall_ttl * 1000)
        found = History.from_settings(self._redis, self._settings).scan_backward(
            Query(sessions=(who.session,))
        )
        recent = takewhile(lambda event: event.envelope.at >= oldest, found)
        refs = (one.envelope.session for one in recent if _has_scope(one.envelope.scope, who))
        return next(refs, SessionRef(who.session, who.session))

    def _read_warm(
        self, scope: Scope | None, session: SessionRef | None
    ) -> tuple[dict[str, WarmResult], WarmCache]:
        cache = WarmCache(self._settings, self._clock, lambda: "up")
        if scope is None or session is None:
            return {}, cache
        cache.connect()
        try:
            return cache.read(owner_slot(scope), [slot_of(scope, session)]), cache
        finally:
            cache.close()

    def _describe_providers(
        self, asks: PatientAsker, ready: Mapping[str, WarmResult], given: Mapping[str, int]
    ) -> tuple[ProviderAnswer, ...]:
        """Return each provider's part, in the order of a block."""
        roster = Roster(self._redis, self._keys)
        names = [name for name, info in roster.providers().items() if info.recall]
        health = RecallHealth(self._redis, self._keys).read(names)

        def part(name: str) -> ProviderAnswer:
            shown, error = given.get(name, 0), health[name].error
            if name in ready:
                return ProviderAnswer(name, "warm", 0.0, len(ready[name].lines), shown)
            if name in asks.asked:
                return _describe_answer(name, asks.replies.get(name), shown, error)
            if health[name].paused:
                return ProviderAnswer(name, "paused", given=shown, why=error)
            why = "no live worker answers its recalls"
            return ProviderAnswer(name, "unserved", given=shown, why=why)

        return tuple(map(part, names))


def _describe_answer(name: str, heard: TimedReply | None, given: int, error: str) -> ProviderAnswer:
    if heard is None:
        return ProviderAnswer(name, "late", None, 0, given, "no answer for as long as was waited")
    took = round(heard.after * 1000, 1)
    if heard.result is None:
        return ProviderAnswer(name, "failed", took, 0, given, error or "its recall failed")
    said = len(heard.result.lines)
    return ProviderAnswer(name, "fresh" if heard.in_time else "late", took, said, given)


def _items(
    asks: PatientAsker, ready: Mapping[str, WarmResult], names: Sequence[str]
) -> tuple[RecalledItem, ...]:
    said = {name: one.result for name, one in asks.replies.items() if one.result is not None}
    return items_of(dict(ready) | said, names)


def _count_shown(block: str, lines: Sequence[str]) -> int:
    """Return how many of some lines stand in a block."""
    return sum(f"\n{line}\n" in block for line in lines)


def _has_scope(scope: Scope, who: Asker) -> bool:
    return (scope.agent, scope.user, scope.workspace) == (who.agent, who.user, who.workspace)
