"""Builds every Redis key that the bus writes, and finds the partition of an order key."""

import zlib
from functools import lru_cache
from typing import Final

from memorybus.events import Scope, StoreName
from memorybus.ids import text_digest
from memorybus.lineage.graph import identity_of

_KEYS_REMEMBERED: Final = 1_024
"""How many partitions of order keys are cached: an agent publishes under few keys, repeatedly."""

ARCHIVE_LANE = "@archive"
"""The name under which the archiver owns a partition, as a provider owns its lane."""


@lru_cache(_KEYS_REMEMBERED)
def partition_of(key: str, partitions: int) -> int:
    """Return the partition of an order key: CRC-32 of its UTF-8 bytes, modulo the count."""
    return zlib.crc32(key.encode("utf-8", "surrogatepass")) % partitions


def session_key(scope: Scope, root: str) -> str:
    """Return the order key of a lineage: ``session:<owner_slot>:<root>``.

    `owner_slot` is 16 hex digits, a digest of agent, person and workspace. So no text of theirs can
    form a key, and the lineages of two people share neither order nor parking, whatever their ids
    are (G3, G6). Keys in an old log may have another form: only this function may rely on it.
    """
    return f"session:{owner_slot(scope)}:{root}"


def owner_slot(scope: Scope) -> str:
    """Return 16 hex digits that stand for an agent, a person and a workspace."""
    return _digest(scope.agent, scope.user, scope.workspace)


def store_key(store: StoreName, scope: Scope) -> str:
    """Return the order key of a memory store: ``memory`` is the agent's, ``user`` the person's."""
    owner = scope.user if store == "user" else scope.agent
    return f"store:{owner}:{store}"


def lane_name(partition: int) -> str:
    """Return a lane's name within its provider, which is its partition's name: ``p07``."""
    return f"p{partition:02d}"


class Keys:
    """The keys of one namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.meta = f"{namespace}:meta"
        self.providers = f"{namespace}:providers"
        self.tools = f"{namespace}:tools"
        self.workers = f"{namespace}:workers"
        self.homes = f"{namespace}:homes"
        self.losses = f"{namespace}:losses"
        self.instances = f"{namespace}:instances"
        self.live = f"{namespace}:live"
        self.pauses = f"{namespace}:pauses"
        self.retries = f"{namespace}:retries"
        self.canary = f"{namespace}:canary"
        self.curator = f"{namespace}:curator"
        self.curator_lease = f"{namespace}:curator:lease"
        self.archive = f"{namespace}:archive"
        self.api_keys = f"{namespace}:api-keys"
        self.model = (f"{namespace}:{{model}}", f"{namespace}:{{model}}:people")

    def _partition(self, partition: int, rest: str) -> str:
        return f"{self.namespace}:{{{lane_name(partition)}}}:{rest}"

    def log(self, partition: int) -> str:
        return self._partition(partition, "log")

    def state(self, partition: int) -> str:
        return self._partition(partition, "state")

    def producers(self, partition: int) -> str:
        return self._partition(partition, "producers")

    def seen(self, partition: int) -> tuple[str, str]:
        return self._partition(partition, "seen:new"), self._partition(partition, "seen:old")

    def lane(self, partition: int, provider: str) -> str:
        return self._partition(partition, f"lane:{provider}")

    def lease(self, partition: int, provider: str) -> str:
        return self._partition(partition, f"lease:{provider}")

    def parked(self, partition: int, provider: str) -> str:
        return self._partition(partition, f"parked:{provider}")

    def dead(self, partition: int, provider: str) -> str:
        return self._partition(partition, f"dead:{provider}")

    def amended(self, partition: int, provider: str) -> str:
        return self._partition(partition, f"amended:{provider}")

    def reply(self, partition: int, event_id: str) -> str:
        return self._partition(partition, f"reply:{event_id}")

    def redo(self, provider: str) -> str:
        return f"{self.namespace}:redo:{provider}"

    def want(self, slot: str) -> str:
        return f"{self.namespace}:want:{{{slot}}}"

    def warm(self, slot: str) -> str:
        return f"{self.namespace}:warm:{{{slot}}}"

    def slot(self, slot: str) -> tuple[str, str]:
        return self.want(slot), self.warm(slot)

    def retracted(self, owner: str) -> str:
        return f"{self.namespace}:retracted:{{{owner}}}"

    def budget(self, provider: str) -> str:
        return f"{self.namespace}:budget:{{{provider}}}"

    def spent(self, provider: str, what: str) -> str:
        return f"{self.namespace}:spent:{{{provider}}}:{what}"

    def recalls(self, provider: str) -> str:
        return f"{self.namespace}:recalls:{{{provider}}}"

    def rebuilding(self, provider: str) -> str:
        return f"{self.namespace}:rebuilding:{provider}"

    def deriving(self, provider: str) -> str:
        return f"{self.namespace}:deriving:{provider}"

    def fence(self, guarded: str, provider: str) -> str:
        return f"{self.namespace}:{{{guarded}}}:fence:{provider}"

    def asks(self, provider: str) -> str:
        return f"{self.namespace}:asks:{{{provider}}}"

    def answers(self, ask_id: str) -> str:
        return f"{self.namespace}:answers:{{{ask_id}}}"

    def prompts(self, provider: str) -> str:
        return f"{self.namespace}:prompts:{{{provider}}}"

    def work(self, provider: str) -> str:
        return f"{self.namespace}:work:{{{provider}}}"

    def paused(self, provider: str) -> str:
        return f"{self.namespace}:paused:{{{provider}}}"


def recall_slot(scope: Scope, session: str) -> str:
    """Return the name of a session's recall slot.

    It is a digest, because ids may hold any character. It includes the scope, so that equal session
    ids of two users have two slots.
    """
    return _digest(*identity_of(scope, session))


def _digest(*parts: str) -> str:
    """Return 16 hex digits for a list of texts; other boundaries between them give other digits."""
    return text_digest("\x00".join(f"{len(part)}:{part}" for part in parts))
