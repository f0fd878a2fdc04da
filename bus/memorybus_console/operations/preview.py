"""Shows an operator what a prompt would be given now: the block, and each provider's part in it.

The answer is made by `recall.answers`, which answers an agent's prompts, and as fast: it is read
from the same warm results, and providers are asked and waited for as an agent does. Nothing is
counted, and nothing is kept warm for the session.
"""

from itertools import takewhile
from typing import Literal

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.events import Scope, SessionRef
from memorybus.ids import new_id, text_digest
from memorybus.query.query import Query
from memorybus.recall.answers import Answer, RecallQuestion, SessionRecall
from memorybus.recall.asking import PromptAsker
from memorybus.recall.cache import WarmCache
from memorybus.recall.health import RecentRecalls
from memorybus.recall.model import (
    RecalledItem,
    RecallRequest,
    WarmAsk,
    items_of,
    slot_of,
    written_partitions,
)
from memorybus.redis.connect import ask_redis
from memorybus.redis.keys import owner_slot
from memorybus.small_talk import kind_of
from memorybus.text.cleaning import clean_text
from memorybus.text.fence import build_block, without_repeats

from memorybus_console.operations.stores import Stores

RecallOutcome = Literal["warm", "fresh", "late", "failed", "paused", "unserved"]
"""How a provider answered. ``warm``: its answer was ready; ``fresh``: it came in time; ``late``: no
answer came in time; ``failed``: the recall failed; ``paused``: after failures the provider is not
asked for a while; ``unserved``: no worker answers its recalls."""


class Asker(msgspec.Struct, frozen=True):
    """The identity for which a prompt is asked. None stands for any; only operators may use it."""

    agent: str | None = "default"
    user: str | None = "default"
    workspace: str | None = ""  # the project; "" for none
    session: str = ""  # the session, which may have warm answers; "" for a new one

    @property
    def scope(self) -> Scope | None:
        """The scope of the asker; None if it asks for several scopes."""
        if self.agent is None or self.user is None or self.workspace is None:
            return None
        return Scope(agent=self.agent, user=self.user, workspace=self.workspace)


class ProviderAnswer(msgspec.Struct, frozen=True):
    """One provider's part in the answer to a prompt.

    Attributes:
        ms: how long it took, in milliseconds; None if it was not asked, or did not answer in time.
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
        items: the memories that providers returned now, each with why it was found, in the order of
            providers.
    """

    block: str  # the memory block, word for word; "" if there is none
    answers: tuple[ProviderAnswer, ...] = ()
    items: tuple[RecalledItem, ...] = ()
    trivial: bool = False  # whether the prompt asks nothing, so that no provider was asked
    waited_ms: float = 0.0
    patience_ms: float = 0.0  # the longest time that a prompt waits


def preview_prompt(
    settings: Settings, text: str, who: Asker, *, budget: int | None = None, clock: Clock = SYSTEM
) -> PromptPreview:
    """Answer a prompt as an agent would be answered now; it waits as long as `prefetch_wait` says.

    Args:
        text: the prompt. A blank one asks for what matters most, as does the first prompt of a
            session that only says "hello".
        budget: the most characters of the block; the setting `recall_budget` if None.

    Raises:
        ConfigError: a session is named, but not the one scope that it belongs to.
    """
    if who.session and who.scope is None:
        raise ConfigError("a session belongs to one agent and one person: name both")
    words = clean_text(text).strip()
    if (kind := kind_of(words)) == "trivial":
        return PromptPreview("", trivial=True)
    words = words if kind in ("question", "follow-up") else ""
    room = settings.recall_budget if budget is None else budget
    with Stores(settings) as stores:
        preview: PromptPreview = ask_redis(
            lambda: _preview(stores, words, who, room, clock), redacted(settings.redis_url)
        )
        return preview


def _preview(stores: Stores, words: str, who: Asker, room: int, clock: Clock) -> PromptPreview:
    settings = stores.settings
    session = _find_session(stores, who, clock)
    slot = text_digest(new_id())  # a slot of our own: the session's answers stay as they are
    want = RecallRequest(words, who.agent, who.user, who.workspace, session, room, detail=True)
    warm = WarmCache(settings, clock, lambda: "up")
    keys = warm.keys("", slot)
    partitions: tuple[int, ...] = ()
    asker = PromptAsker(settings, clock, new_id, lambda: "up")
    if who.scope is not None and session is not None:
        keys = warm.keys(owner_slot(who.scope), slot_of(who.scope, session))
        partitions = written_partitions(who.scope, session, settings.partitions)
    try:
        warm.connect()
        question = RecallQuestion(keys, words, lambda _: WarmAsk(slot, 0, want, partitions))
        answer = SessionRecall(warm, asker, clock).answer(question, settings.prefetch_wait)
        block = build_block(without_repeats(warm.in_provider_order(answer.lines)), room)
    finally:
        asker.delete_slot(slot)
        asker.close()
        warm.close()
    names = [name for name, info in stores.roster.providers().items() if info.recall]
    health = stores.recall_health.read(names)
    return PromptPreview(
        block=block,
        answers=tuple(describe_answer(name, answer, block, health[name]) for name in names),
        items=items_of({**answer.ready, **answer.replies.answered()}, names),
        waited_ms=answer.waited_ms,
        patience_ms=round(settings.prefetch_wait * 1000, 1),
    )


def _find_session(stores: Stores, who: Asker, clock: Clock) -> SessionRef | None:
    """Return a session's newest reference; look back only as long as its answers stay warm."""
    if not who.session:
        return None
    oldest = clock.now_ms() - round(stores.settings.recall_ttl * 1000)
    events = stores.history.scan_backward(Query(sessions=(who.session,)))
    recent = takewhile(lambda event: event.envelope.at >= oldest, events)
    refs = (event.envelope.session for event in recent if _has_scope(event.envelope.scope, who))
    return next(refs, SessionRef(who.session, who.session))


def _has_scope(scope: Scope, who: Asker) -> bool:
    return (scope.agent, scope.user, scope.workspace) == (who.agent, who.user, who.workspace)


def describe_answer(
    provider: str, answer: Answer, block: str, health: RecentRecalls
) -> ProviderAnswer:
    """Return one provider's part in the answer to a prompt.

    Args:
        health: how the provider's recalls went lately.
    """
    given = sum(f"\n{line}\n" in block for line in answer.lines.get(provider, ()))
    replies = answer.replies
    if provider in answer.ready:
        return ProviderAnswer(provider, "warm", 0.0, len(answer.ready[provider].lines), given)
    if provider in replies.results:
        ms = round(replies.seconds[provider] * 1000, 1)
        result = replies.results[provider]
        if result is None:
            why = health.error or "its recall failed"
            return ProviderAnswer(provider, "failed", ms, given=given, why=why)
        return ProviderAnswer(provider, "fresh", ms, len(result.lines), given)
    if provider in (replies.asked or ()):
        return ProviderAnswer(provider, "late", given=given, why="no answer in time")
    if health.paused:
        return ProviderAnswer(provider, "paused", given=given, why=health.error)
    why = "no live worker answers its recalls"
    return ProviderAnswer(provider, "unserved", given=given, why=why)
