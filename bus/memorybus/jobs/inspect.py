"""Asks one instance of a provider for its digest, its recalls and its memories.

Each question is one RQ job in the queue of the provider's recall processes, which run where its
state is. A digest is read page by page, each within the time of a recall, so that a large state
delays no recall for long. Both instances must be paused before they are compared.
"""

from typing import Any, ClassVar, Generic, TypeVar, cast

import msgspec
from redis import Redis

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.ids import NewId, new_id
from memorybus.jobs.waiting import AwaitedReplies, Listener, Reply
from memorybus.msgspec_types import prepared
from memorybus.recall.model import RecalledItem, RecallRequest
from memorybus.recall.queue import enqueue_call, longest_run
from memorybus.redis.keys import Keys
from memorybus.registry.roster import Roster

JOB = "memorybus_workers.jobs.inspect.run"
"""The callable that the recall queues may run in addition to recalls and tools."""

PARTITION = 0  # the partition under whose keys the replies are written
_QUEUE_WAIT_SECONDS = 5.0
"""Seconds that are added to the time of a job, because it may wait behind a recall."""


class DigestPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of a digest."""

    given: bool = True  # whether the provider has digests
    pairs: tuple[tuple[str, str], ...] = ()  # keys with their digests, in the order of keys
    more: bool = False  # whether there are keys above the last one


class KeptPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of what an instance keeps of somebody."""

    given: bool = True  # whether the provider can answer (`Capabilities.exports`, or `curates`)
    # each has the fields of a provider's `StoredMemory` that are not empty
    memories: tuple[dict[str, Any], ...] = ()
    more: bool = False  # whether there may be more memories


class OwnersPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of the people and agents of whom an instance keeps something."""

    given: bool = True  # whether the provider can list owners
    owners: tuple[dict[str, Any], ...] = ()  # each has the fields of a provider's `MemoryOwner`
    more: bool = False  # whether there may be more owners


class EraseReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an instance erased of somebody."""

    given: bool = True  # whether the provider can erase (`Capabilities.forgets`)
    erased: int | None = None  # how many memories it erased; None if it does not say
    remains: tuple[str, ...] = ()  # the memories that it could not reach, in its words


class InstanceHealth(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an instance could not serve now; "" if it is well."""

    why: str = ""


class RecalledItems(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an instance recalls."""

    items: tuple[RecalledItem, ...] = ()


ReplyT = TypeVar("ReplyT")


class InstanceQuestion(msgspec.Struct, Generic[ReplyT], frozen=True):
    """A question to an instance, which is answered by a `ReplyT`."""

    reply: ClassVar[Any]


class ReadDigest(InstanceQuestion[DigestPage], frozen=True, omit_defaults=True, tag="digest"):
    """Asks for a page of the digest: `DigestPage`."""

    reply = DigestPage

    after: str = ""  # only the keys above this one
    keys: tuple[str, ...] = ()  # only these keys; empty for all


class TryRecall(InstanceQuestion[RecalledItems], frozen=True, tag="recall"):
    """Asks what the instance recalls: `RecalledItems`."""

    reply = RecalledItems

    want: RecallRequest


class ReadKept(InstanceQuestion[KeptPage], frozen=True, omit_defaults=True, tag="kept"):
    """Asks for a page of what the instance keeps of somebody: `KeptPage`."""

    reply = KeptPage

    whose: RecallRequest  # the owner; only agent, user and workspace count
    skip: int = 0  # how many memories the asker has already
    most: int = 0  # the most memories to send; 0 for as many as fit
    containing: str = ""  # only memories with this text, or from the event of this id; "" for all
    curated: bool = False  # only memories that age (`MemoryProvider.curated`), with their states
    state: str = ""  # only those in this state; "" for all


class ReadOwners(InstanceQuestion[OwnersPage], frozen=True, omit_defaults=True, tag="owners"):
    """Asks for a page of the owners of whom the instance keeps memories: `OwnersPage`."""

    reply = OwnersPage

    # the owner behind whom the page begins; only its agent, user and workspace count
    after: RecallRequest | None = None
    most: int = 0  # the most owners to send; 0 for as many as fit
    containing: str = ""  # only owners whose names contain this text; "" for all


class Erase(InstanceQuestion[EraseReport], frozen=True, tag="erase"):
    """Asks the instance to erase what it keeps of somebody: `EraseReport`."""

    reply = EraseReport

    whose: RecallRequest  # the owner; only agent, user and workspace count


class CheckHealth(InstanceQuestion[InstanceHealth], frozen=True, tag="health"):
    """Asks whether the backend of the instance works: `InstanceHealth`."""

    reply = InstanceHealth


InspectionQuestion = ReadDigest | TryRecall | ReadKept | ReadOwners | Erase | CheckHealth
"""Each has a tag, so that the recall process knows which one it was sent."""


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """A question to one instance (the job's one argument, as JSON)."""

    id: str  # 32 hex digits; the reply is found by it
    provider: str  # the provider whose recall processes are asked
    instance: str  # the provider, or a copy of it
    question: InspectionQuestion  # the question


class InspectionFailed(MemoryBusError):
    """An instance could not be inspected; the message says why."""


class InstanceInspector:
    """Asks an instance and waits for its answer. Belongs to one thread."""

    def __init__(self, settings: Settings, clock: Clock, make_id: NewId = new_id) -> None:
        self._settings = settings
        self._make_id = make_id
        self._listener = Listener(settings, clock)

    def ask(self, provider: str, instance: str, question: InstanceQuestion[ReplyT]) -> ReplyT:
        """Return the answer of an instance. `InspectionFailed`: it did not answer, or could not."""
        asked = Inspection(
            id=self._make_id(),
            provider=provider,
            instance=instance,
            question=cast("InspectionQuestion", question),
        )
        timeout = longest_run(self._settings) + _QUEUE_WAIT_SECONDS

        def enqueue(redis: Redis) -> AwaitedReplies:
            problem = _enqueue(redis, self._settings, asked, timeout)
            return AwaitedReplies(PARTITION, [asked.id], [provider], problem)

        heard = self._listener.wait_for_replies(enqueue, timeout)
        replies = heard.replies.get(provider, [])
        reply = replies[0] if replies else Reply(error=heard.problem or "no answer in time")
        if reply.error:
            raise InspectionFailed(f"{instance} cannot be read: {reply.error}")
        answer: ReplyT = msgspec.json.decode(reply.text, type=prepared(question.reply))
        return answer


def _enqueue(redis: Redis, settings: Settings, asked: Inspection, timeout: float) -> str:
    if asked.provider not in Roster(redis, Keys(settings.namespace)).job_providers():
        return (
            f"no live worker runs the recalls of {asked.provider}; start one: memorybus up "
            "(or memorybus worker)"
        )
    body = msgspec.json.encode(asked).decode()
    return enqueue_call(settings, asked.provider, JOB, body, asked.id, timeout=timeout)
