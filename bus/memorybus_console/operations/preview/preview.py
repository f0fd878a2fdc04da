"""Shows an operator what a prompt would be given now: the block, and each provider's part in it.

It asks the providers that an agent's session would ask (`recall.prompt`), with the same patience,
but listens for longer. So the operator sees which providers are late, and what they would have
said. Nothing is counted, and nothing is kept warm for the session.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.events import Scope, SessionRef
from memorybus.ids import new_id, text_digest
from memorybus.query.query import Query
from memorybus.recall.cache import WarmCache
from memorybus.recall.counts import PromptCounter
from memorybus.recall.exchange import PromptExchange
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
from memorybus.redis.connect import ask_redis
from memorybus.redis.keys import owner_slot
from memorybus.small_talk import is_trivial
from memorybus.text.cleaning import clean_text
from memorybus.text.fence import build_block, without_repeats

from memorybus_console.operations.preview.asker import Asker
from memorybus_console.operations.preview.patient_asker import PatientAsker
from memorybus_console.operations.preview.provider_answer import ProviderAnswer, describe_answer
from memorybus_console.operations.stores import Stores


class PromptPreview(msgspec.Struct, frozen=True):
    """What a prompt would be given.

    Attributes:
        block: the memory block, word for word; "" if there is none.
        answers: each provider's part.
        items: the memories that providers returned, each with why it was found, in the order of
            providers; those that came late are included.
        trivial: whether the prompt asks nothing, so that no provider was asked.
        waited_ms: how long the prompt would have waited.
        patience_ms: the longest time that a prompt waits.
    """

    block: str
    answers: tuple[ProviderAnswer, ...] = ()
    items: tuple[RecalledItem, ...] = ()
    trivial: bool = False
    waited_ms: float = 0.0
    patience_ms: float = 0.0


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
        who: the identity for which it asks.
        budget: the most characters of the block; the setting `recall_budget` if None.
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
    with Stores(settings) as stores:
        previewer = _PromptPreviewer(stores, clock)
        found: PromptPreview = ask_redis(
            lambda: previewer.run(query, who, budget, timeout), redacted(settings.redis_url)
        )
        return found


class _PromptPreviewer:
    """Asks one question. Belongs to one thread."""

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores = stores
        self._settings = stores.settings
        self._clock = clock

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
            exchange.delete_slot(slot)
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
        """Return a session's newest reference; look back only as long as its answers stay warm."""
        if not who.session:
            return None
        oldest = self._clock.now_ms() - round(self._settings.recall_ttl * 1000)
        found = self._stores.history.scan_backward(Query(sessions=(who.session,)))
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
        providers = self._stores.roster.providers().items()
        names = [name for name, info in providers if info.recall]
        health = self._stores.recall_health.read(names)
        return tuple(
            describe_answer(
                name,
                ready=ready.get(name),
                asked=name in asks.asked,
                reply=asks.replies.get(name),
                given=given.get(name, 0),
                health=health[name],
            )
            for name in names
        )


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
