"""Every Redis key the bus writes, and which partition an order key belongs to.

The only module in which a key is spelled. ``docs/redis-keys.md`` is generated from `TABLE`.
All keys of one partition share the hash tag ``{pNN}``, hence a slot of Redis Cluster.
"""

import re
import zlib

import msgspec

from memorybus.events import Scope, StoreName
from memorybus.ids import text_digest


def partition_of(key: str, partitions: int) -> int:
    """Return the partition of an order key: CRC-32 of its UTF-8 bytes, modulo the count."""
    return zlib.crc32(key.encode("utf-8", "surrogatepass")) % partitions


def session_key(root: str) -> str:
    """Return the order key of a lineage."""
    return f"session:{root}"


def store_key(store: StoreName, scope: Scope) -> str:
    """Return the order key of a memory store: ``memory`` is the agent's, ``user`` the person's."""
    owner = scope.user if store == "user" else scope.agent
    return f"store:{owner}:{store}"


def lane_name(partition: int) -> str:
    """Return a lane's name within its provider, which is its partition's name: ``p07``."""
    return f"p{partition:02d}"


class KeyDoc(msgspec.Struct, frozen=True):
    """One line of the key table: what a key is for, its type and whether it may live for ever."""

    template: str
    type: str
    permanent: bool
    meaning: str


TABLE: tuple[KeyDoc, ...] = (
    KeyDoc(
        "{ns}:meta",
        "hash",
        True,
        "Written once, at the log's birth: the number of partitions, the format and the log's id.",
    ),
    KeyDoc(
        "{ns}:losses",
        "hash",
        True,
        "What workers saw the log lose and the log itself no longer shows: a wiped log, a lost "
        "tail. An operator deletes a field once it is dealt with.",
    ),
    KeyDoc(
        "{ns}:providers",
        "hash",
        True,
        "Provider instances by name: kind, delivery, placement, order of recall.",
    ),
    KeyDoc(
        "{ns}:tools",
        "hash",
        True,
        "The tools that provider instances declare, by name: schemas (at most 64 KiB), and which "
        "of them only read.",
    ),
    KeyDoc(
        "{ns}:workers",
        "hash",
        True,
        "Heartbeats of workers by id; an entry older than a minute is removed by any worker.",
    ),
    KeyDoc(
        "{ns}:homes",
        "hash",
        True,
        "Where the state of `local` providers lies: place, host and path, by provider.",
    ),
    KeyDoc(
        "{ns}:{pNN}:log",
        "stream",
        True,
        "The partition: `n` (dense number), `e` (envelope), or `r` for one that came again.",
    ),
    KeyDoc(
        "{ns}:{pNN}:state",
        "hash",
        True,
        "The partition's last dense number, the number up to which it may be trimmed (`sealed`, "
        "of the archive), counts of duplicates and conflicts, when its window of event ids began, "
        "and who last asked a replica to confirm (`confirmed`).",
    ),
    KeyDoc(
        "{ns}:{pNN}:producers",
        "hash",
        True,
        "Last sequence taken from each producer; a producer's field goes with its spool.",
    ),
    KeyDoc(
        "{ns}:{pNN}:seen:new",
        "hash",
        True,
        "Event ids of the running window and their payload digests (G2).",
    ),
    KeyDoc("{ns}:{pNN}:seen:old", "hash", True, "The window before; dropped when the next begins."),
    KeyDoc(
        "{ns}:{pNN}:lane:<provider>",
        "hash",
        True,
        "A lane: epoch (only grows), checkpoint (entry, n), when it last moved, how many events "
        "are parked, how many an operator discarded.",
    ),
    KeyDoc(
        "{ns}:{pNN}:lease:<provider>",
        "string",
        False,
        "Who owns the lane now: `epoch:worker`. Expires unless renewed.",
    ),
    KeyDoc(
        "{ns}:{pNN}:parked:<provider>",
        "hash",
        True,
        "Order keys that wait behind a dead letter, with the last position put aside and the "
        "number of events that wait.",
    ),
    KeyDoc(
        "{ns}:{pNN}:dead:<provider>",
        "stream",
        True,
        "Dead letters and the later events of their keys, in order.",
    ),
    KeyDoc(
        "{ns}:{pNN}:amended:<provider>",
        "hash",
        True,
        "What became of dead letters since, by entry: later refusals, an operator's edit.",
    ),
    KeyDoc(
        "{ns}:{pNN}:reply:<event>",
        "hash",
        False,
        "What providers answered to an event whose publisher waits, or to a reading tool's call.",
    ),
    KeyDoc(
        "{ns}:redo:<provider>",
        "hash",
        True,
        "What operators asked of dead letters (at most 256 requests); the lanes' owners carry "
        "it out and remove it.",
    ),
    KeyDoc(
        "{ns}:want:{<session>}",
        "hash",
        False,
        "The newest recall a session asked for: generation, query, scope, positions.",
    ),
    KeyDoc(
        "{ns}:warm:{<session>}",
        "hash",
        False,
        "Warm results by provider, each with the generation it answers.",
    ),
    KeyDoc(
        "{ns}:recalls:{<provider>}",
        "hash",
        False,
        "How the provider's recalls went: failures in a row and in all, the last error, skipped.",
    ),
    KeyDoc(
        "{ns}:paused:{<provider>}",
        "string",
        False,
        "While it is there, no recall is asked of the provider: several failed in a row.",
    ),
)


class Keys:
    """The keys of one namespace."""

    def __init__(self, namespace: str) -> None:
        """Prefix every key with `namespace`."""
        self.namespace = namespace
        self.meta = f"{namespace}:meta"
        self.providers = f"{namespace}:providers"
        self.tools = f"{namespace}:tools"
        self.workers = f"{namespace}:workers"
        self.homes = f"{namespace}:homes"
        self.losses = f"{namespace}:losses"

    def _partition(self, partition: int, rest: str) -> str:
        return f"{self.namespace}:{{{lane_name(partition)}}}:{rest}"

    def log(self, partition: int) -> str:
        """Return the partition's stream."""
        return self._partition(partition, "log")

    def state(self, partition: int) -> str:
        """Return the partition's counters."""
        return self._partition(partition, "state")

    def producers(self, partition: int) -> str:
        """Return the last sequence of each producer."""
        return self._partition(partition, "producers")

    def seen(self, partition: int) -> tuple[str, str]:
        """Return the running and the previous window of event ids."""
        return self._partition(partition, "seen:new"), self._partition(partition, "seen:old")

    def lane(self, partition: int, provider: str) -> str:
        """Return a lane's epoch and checkpoint."""
        return self._partition(partition, f"lane:{provider}")

    def lease(self, partition: int, provider: str) -> str:
        """Return a lane's lease."""
        return self._partition(partition, f"lease:{provider}")

    def parked(self, partition: int, provider: str) -> str:
        """Return a lane's parked order keys."""
        return self._partition(partition, f"parked:{provider}")

    def dead(self, partition: int, provider: str) -> str:
        """Return a lane's dead letters."""
        return self._partition(partition, f"dead:{provider}")

    def amended(self, partition: int, provider: str) -> str:
        """Return what became of a lane's dead letters since."""
        return self._partition(partition, f"amended:{provider}")

    def reply(self, partition: int, event_id: str) -> str:
        """Return what providers answered to an event, or to a call."""
        return self._partition(partition, f"reply:{event_id}")

    def redo(self, provider: str) -> str:
        """Return what operators asked of a provider's dead letters."""
        return f"{self.namespace}:redo:{provider}"

    def want(self, slot: str) -> str:
        """Return what a session's recall slot asked for last."""
        return f"{self.namespace}:want:{{{slot}}}"

    def warm(self, slot: str) -> str:
        """Return a session's warm results."""
        return f"{self.namespace}:warm:{{{slot}}}"

    def recalls(self, provider: str) -> str:
        """Return how a provider's recalls went of late."""
        return f"{self.namespace}:recalls:{{{provider}}}"

    def paused(self, provider: str) -> str:
        """Return what stands while no recall is asked of a provider."""
        return f"{self.namespace}:paused:{{{provider}}}"


def recall_slot(scope: Scope, session: str) -> str:
    """Return the name of a session's recall slot.

    A digest, because ids may hold any character; it covers the scope, so that equal session ids of
    two users never meet.
    """
    parts = (scope.agent, scope.user, scope.workspace, session)
    return text_digest("\x00".join(f"{len(part)}:{part}" for part in parts))


def is_permanent(key: str, namespace: str) -> bool:
    """Say whether a key may live without a time to live (the leak check of the tests asks)."""
    return any(_pattern(doc, namespace).fullmatch(key) for doc in TABLE if doc.permanent)


def _pattern(doc: KeyDoc, namespace: str) -> re.Pattern[str]:
    template = re.escape(doc.template)
    template = template.replace(re.escape("{ns}"), re.escape(namespace))
    template = template.replace(re.escape("{pNN}"), r"\{p\d{2,}\}")
    return re.compile(template.replace(re.escape("<provider>"), ".+"))
