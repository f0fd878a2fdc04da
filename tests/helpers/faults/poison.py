"""Events that a provider, or this release, can make nothing of; each under a session of its own."""

from typing import Final

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import EventTooLarge, InvalidEvent
from memorybus.events import Envelope, Scope, SessionRef, TurnCompleted
from memorybus.ids import derived_id, digest
from memorybus.redis import scripts
from memorybus.redis.keys import Keys, partition_of, session_key
from memorybus.redis.scripts import OutgoingEvent
from memorybus.wire.codec import Encoder
from redis import Redis

from helpers.faults.sink import EXITS, HANGS, RAISES

REFUSED_BY_THE_PROVIDER: Final = {"raises": RAISES, "hangs": HANGS, "exits": EXITS}
FOREIGN: Final = ("surrogates", "newer schema")
FOLLOWERS = 2
"""Good events behind each bad one, of the same key: they must wait with it (G6)."""


def session_of(kind: str, number: int) -> str:
    """Return the session of one bad event."""
    return f"poison-{kind.replace(' ', '-')}-{number}"


def publish(bus: MemoryBus, kind: str, number: int) -> set[str]:
    """Publish an event that the provider fails over, and some behind it; return their ids."""
    session = bus.session(session_of(kind, number), warm=False)
    texts = [REFUSED_BY_THE_PROVIDER[kind], *("good" for _ in range(FOLLOWERS))]
    return {
        session.turn_completed(text, "ok", ordinal=ordinal).event_id
        for ordinal, text in enumerate(texts)
    }


def put_into_log(redis: Redis, settings: Settings, kind: str, number: int) -> int:
    """Write an entry that no bus of this release would write; return its partition."""
    name = session_of(kind, number)
    envelope = Envelope(
        id=derived_id(name),
        key=session_key(Scope(), name),
        scope=Scope(),
        session=SessionRef(name, name),
        at=0,
        event=TurnCompleted(user="SURROGATE", assistant="ok"),
    )
    body = Encoder(1 << 20).envelope(envelope)
    if kind == "surrogates":
        body = body.replace(b"SURROGATE", b"\xed\xa0\x80\xed\xb0\x80xyz")  # two lone surrogates
    else:
        body = _newer(body)
    partition = partition_of(envelope.key, settings.partitions)
    event = OutgoingEvent(1, bytes.fromhex(envelope.id), digest(body), body)
    call = scripts.append(
        Keys(settings.namespace), partition, name, 0, [event], window_ms=60_000, max_ids=1_000
    )
    scripts.run(redis, call)
    return partition


def _newer(body: bytes) -> bytes:
    fields = msgspec.msgpack.decode(body)
    fields["v"] = 99
    fields["event"]["thoughts"] = ["of", "a", "later", "release"]
    return msgspec.msgpack.encode(fields)


def refused_at_once(bus: MemoryBus) -> int:
    """Publish what the bus refuses by name; return how many refusals there were."""
    session = bus.session("poison-refused", warm=False)
    count = 0
    for text, error in ((RAISES + " \ud800", InvalidEvent), ("x" * (1 << 20), EventTooLarge)):
        try:
            bus.publish(
                TurnCompleted(user=text),
                key=session.key,
                scope=session.scope,
                session=session.ref,
            )
        except error:
            count += 1
    return count
