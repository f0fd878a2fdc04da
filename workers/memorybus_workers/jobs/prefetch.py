"""Answers recalls: waits for the session's events, asks the provider, keeps its answer warm."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo

import msgspec
from memorybus.clock import Clock
from memorybus.concurrency.backoff import look_pause
from memorybus.config.settings import Settings
from memorybus.ids import text_digest
from memorybus.msgspec_types import prepared
from memorybus.recall import retractions
from memorybus.recall.health import RecallHealth, RecentRecalls
from memorybus.recall.model import GENERATION, RecalledItem, RecallRequest, WarmResult, lifetime_ms
from memorybus.recall.prompt_asks import PromptAsk, PromptReply
from memorybus.redis import scripts
from memorybus.redis.facts import to_milliseconds
from memorybus.redis.keys import Keys
from memorybus.testing import CrashPoint, no_crash
from memorybus.text.fence import LONG_TEXT, escape, escape_inline, fitting, line, passage, room_of
from memorybus.text.redact import describe_error
from memorybus.tracing.spans import Tracing
from memorybus_providers.base import RecallContext, RecallScope, Recollection, Why
from redis import Redis
from structlog.contextvars import bind_contextvars

from memorybus_workers.jobs.live import LiveInstances, live_instance

_log = logging.getLogger("memorybus")
_MAX_ROUNDS = 5


_STALL_SHARE = 0.25
"""After this share of the wait without progress, the recall does not wait any longer."""


_RESPITE_SECONDS = 2.0
"""Seconds for which no recall waits for a provider that made no progress: others get answers."""


class ReadYourWrites:
    """Waits for a provider's lanes. Belongs to one thread."""

    def __init__(
        self, redis: Redis, keys: Keys, longest: float, clock: Clock, most: int | None = None
    ) -> None:
        self._most = most
        self._redis = redis
        self._keys = keys
        self._longest = longest
        self._clock = clock
        self._unwaited_until: dict[str, float] = {}

    def wait(self, provider: str, positions: Mapping[int, int]) -> bool:
        """Wait until dense numbers, by partition, are applied, or waiting is not worth the time."""
        now = began = self._clock.monotonic()
        missing = self._missing(provider, positions)
        if not missing or now < self._unwaited_until.get(provider, 0.0):
            return not missing
        deadline, before = now + self._longest, 0
        stalled = now + self._longest * _STALL_SHARE
        while missing and now < min(deadline, stalled):
            if self._most is not None and missing > self._most:
                return False
            if missing != before:  # there is progress, so more waiting is worth it
                before, stalled = missing, now + self._longest * _STALL_SHARE
            self._clock.sleep(look_pause(now - began))
            now = self._clock.monotonic()
            missing = self._missing(provider, positions)
        if missing and now >= stalled:
            self._unwaited_until[provider] = now + _RESPITE_SECONDS
        return not missing

    def _missing(self, provider: str, positions: Mapping[int, int]) -> int:
        if not positions:
            return 0
        with self._redis.pipeline(transaction=False) as pipe:
            for partition in positions:
                pipe.hget(self._keys.lane(partition, provider), "n")
            applied = [int(n or 0) for n in pipe.execute()]
        return sum(max(0, w - n) for n, w in zip(applied, positions.values(), strict=True))


class SlotRequest(msgspec.Struct, frozen=True):
    """A slot's newest request."""

    generation: int  # its number
    want: RecallRequest  # the request itself
    answered: bool  # whether its answer is stored already
    instance: str  # the instance that is to answer


class Recaller:
    """Answers recalls on provider instances that stay open. Belongs to one thread."""

    def __init__(
        self,
        redis: Redis,
        settings: Settings,
        clock: Clock,
        instances: LiveInstances,
        applied: ReadYourWrites,
        crash: CrashPoint = no_crash,
    ) -> None:
        self._redis = redis
        self._settings = settings
        self._clock = clock
        self._instances = instances
        self._crash = crash
        self._keys = Keys(settings.namespace)
        self._health = RecallHealth(redis, self._keys)
        self._applied = applied
        self._tracing = Tracing(settings.namespace)

    def warm(self, slot: str, provider: str) -> None:
        """Answer the newest request of a slot; if a newer one came meanwhile, answer it, too.

        The provider is not called if the answer is stored already, or its recalls are paused. If
        another instance began to serve meanwhile, that one answers again (G8). After an error
        nothing is stored, because an error does not mean that there are no memories.
        """
        asked = ""
        for _ in range(_MAX_ROUNDS):
            request = self._read_request(slot, provider)
            if request is None or (request.answered and asked in ("", request.instance)):
                return
            asked = request.instance
            session = request.want.session
            bind_contextvars(session=session.id if session else "")
            health = self._health.read([provider])[provider]
            if health.paused and not request.want.detail:  # a person who asks is a probe
                self._health.count_skipped([provider])
                return
            self._answer(slot, provider, request, health)

    def answer(self, ask: PromptAsk, provider: str) -> PromptReply | None:
        """Answer a prompt's question, and keep the answer warm for the slot's next prompt."""
        if self._is_forgotten(ask):
            return None
        session = ask.want.session
        bind_contextvars(session=session.id if session else "")
        health = self._health.read([provider])[provider]
        if health.paused:
            return PromptReply(provider)
        serving = self._instances.find_serving(provider)
        request = SlotRequest(ask.generation, ask.want, False, serving)
        try:
            return PromptReply(provider, self._answer(ask.slot, provider, request, health))
        except Exception as error:
            _log.warning("a recall of %s failed: %s", provider, describe_error(error))
            return PromptReply(provider)

    def _is_forgotten(self, ask: PromptAsk) -> bool:
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.hget(self._keys.want(ask.slot), "g")
            time, newest = pipe.execute()
        late = to_milliseconds(time) > ask.until_ms
        return late and int(newest or 0) != ask.generation

    def _read_request(self, slot: str, provider: str) -> SlotRequest | None:
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hmget(self._keys.want(slot), "g", "r")
            pipe.hget(self._keys.warm(slot), _generation_field(provider))
            pipe.hget(self._keys.live, provider)
            (generation, body), held, live = pipe.execute()
        if generation is None or body is None:
            return None
        want = msgspec.json.decode(body, type=prepared(RecallRequest))
        answered = int(held or 0) >= int(generation)
        return SlotRequest(int(generation), want, answered, live_instance(provider, live))

    def _answer(
        self, slot: str, provider: str, request: SlotRequest, health: RecentRecalls
    ) -> WarmResult:
        """Store the answer to one request, unless another instance began to serve meanwhile."""
        instance = request.instance
        with self._tracing.answer(provider, request.want.trace) as span:
            current = self._applied.wait(instance, request.want.positions)
            mark = self._read_mark(request.want, provider)
            try:
                answer = self._ask_provider(instance, request.want, provider, mark)
            except Exception as error:
                # The call may have been interrupted anywhere: the next job opens another instance.
                self._instances.close(instance)
                reason = describe_error(error, self._settings.secrets)
                self._record_error(
                    slot, provider, reason, lifetime_ms(self._settings, request.want)
                )
                raise
            if request.want.early or not current:  # it lacks the last events: asked again
                answer = msgspec.structs.replace(answer, asked="")
            if self._instances.find_serving(provider) == instance:
                self._store(slot, provider, request, msgspec.msgpack.encode(answer))
            if health.failing:
                self._health.note_success(provider)
            if span:
                span.set_counts(lines=len(answer.lines))
            return answer

    def _store(self, slot: str, provider: str, request: SlotRequest, result: bytes) -> None:
        """Keep an answer warm, unless a swap has purged the answers of its instance (G8)."""
        ttl = lifetime_ms(self._settings, request.want)
        scripts.run(
            self._redis,
            scripts.store_warm(self._keys, slot, provider, request.generation, result, ttl),
        )
        self._crash("recall.stored")
        if self._instances.find_serving(provider) != request.instance:
            warm, answered = self._keys.warm(slot), str(request.generation).encode()
            for field, ours in ((provider, result), (_generation_field(provider), answered)):
                scripts.run(self._redis, scripts.change_field(warm, field, b"", seen=ours))

    def _read_mark(self, want: RecallRequest, provider: str) -> str:
        owner = want.owner
        return retractions.mark_of(self._redis, self._settings, owner, provider) if owner else ""

    def _ask_provider(
        self, instance: str, want: RecallRequest, provider: str, mark: str
    ) -> WarmResult:
        scope = RecallScope(want.agent, want.user, want.workspace)
        opened = self._instances.open_instance(instance)
        if want.prompt:
            return WarmResult(passage(opened.system_prompt_block(scope), want.budget), mark=mark)
        deadline = self._settings.recall_timeout / 2
        context = RecallContext(
            scope, want.session, want.budget, deadline, explain=want.detail, as_of=want.as_of
        )
        recollections = opened.prefetch(want.query, context)
        return render(recollections, want, provider, mark, self._settings.zone)

    def _record_error(self, slot: str, provider: str, error: str, ttl: int) -> None:
        self._health.note_failure(provider, error, self._clock.now_ms())
        want = self._keys.want(slot)
        if self._redis.exists(want):
            with self._redis.pipeline(transaction=True) as pipe:
                pipe.hset(want, f"e:{provider}", error)
                pipe.pexpire(want, ttl)  # the key may have expired meanwhile, and be a new one
                pipe.execute()


def _generation_field(provider: str) -> bytes:
    return GENERATION + provider.encode()


def render(
    recollections: Sequence[Recollection],
    want: RecallRequest,
    provider: str,
    mark: str = "",
    zone: tzinfo = UTC,
) -> WarmResult:
    whole = [_line(recollection, zone) for recollection in recollections]
    places = fitting(whole, room_of(provider, want.budget))
    items = (
        [_render_item(provider, recollections[place]) for place, _ in places] if want.detail else []
    )
    lines = tuple(text for _, text in places)
    events = tuple(recollections[place].event for place, _ in places)
    scores = tuple(recollections[place].score for place, _ in places)
    asked = text_digest(want.query)
    return WarmResult(lines, tuple(items), asked, mark, events, scores)


def _line(recollection: Recollection, zone: tzinfo) -> str:
    return line(
        recollection.text,
        at=recollection.at,
        speaker=recollection.speaker,
        until=recollection.until,
        before=recollection.before,
        event=recollection.event
        if recollection.truncated or len(recollection.text) > LONG_TEXT
        else "",
        zone=zone,
    )


def _render_item(provider: str, recollection: Recollection) -> RecalledItem:
    why = recollection.why or Why()
    return RecalledItem(
        provider,
        escape(recollection.text),
        recollection.session,
        recollection.at or None,
        escape_inline(recollection.source),
        recollection.truncated,
        escape_inline(recollection.speaker),
        escape_inline(recollection.event),
        recollection.until or None,
        escape_inline(recollection.before),
        recollection.score,
        tuple(map(escape_inline, why.words)),
        why.meaning,
        {escape_inline(name): amount for name, amount in why.parts.items()},
    )
