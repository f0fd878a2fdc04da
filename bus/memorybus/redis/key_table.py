"""The table of Redis keys: what each is for, and whether it may live for ever.

``docs/redis-keys.md`` is generated from `TABLE`; the leak check of the tests asks `is_permanent`.
"""

import re

import msgspec


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
        "{ns}:instances",
        "hash",
        True,
        "Instances that no settings name, by name: copies that a replay or a rebuild fills, each "
        "with what it takes of the history.",
    ),
    KeyDoc(
        "{ns}:tuned",
        "hash",
        True,
        "Limits of calls that an operator set while workers run, by provider: they hold instead of "
        "those of the settings.",
    ),
    KeyDoc(
        "{ns}:retries",
        "hash",
        True,
        "The last wish that what waits for another try goes on now, by instance.",
    ),
    KeyDoc(
        "{ns}:live",
        "hash",
        True,
        "Which instance serves a provider's recalls and tools, by provider, if not the one of its "
        "own name; the one before; and while a swap is under way which one joins or leaves.",
    ),
    KeyDoc(
        "{ns}:held",
        "hash",
        True,
        "Instances whose lanes stand still, by name: why, since when and who wanted it; what a "
        "command holds for a moment, over that.",
    ),
    KeyDoc(
        "{ns}:canary",
        "string",
        False,
        "When a canary last came through all lanes that it met (milliseconds).",
    ),
    KeyDoc(
        "{ns}:told",
        "hash",
        False,
        "Who tells people of findings now, until when unless it says more (`owner`, `until`), and "
        "what was told (`note`).",
    ),
    KeyDoc(
        "{ns}:archive",
        "hash",
        True,
        "What archivers say: by partition what is sealed (segments, events, bytes), by worker "
        "where it archives and what keeps it from doing so; a worker that is silent for a minute "
        "is removed.",
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
        "of the archive, and its `sealed_entry`), counts of duplicates and conflicts, when its "
        "window of event ids began, "
        "which run of which server it was born on, and who last asked a replica to confirm "
        "(`confirmed`), and where the next look for silent producers begins (`swept`).",
    ),
    KeyDoc(
        "{ns}:{pNN}:producers",
        "hash",
        True,
        "Last sequence taken from each producer, and under `<id>:heard` when, and whether it sends "
        "none of that again (`rests`). Both go with its spool, or after `dedupe_window` of "
        "silence; after thirty of them if the producer does not rest.",
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
        "The newest recall a session asked for: generation, query, scope, positions. Of an agent, "
        "person and workspace together: what stands in their system prompts.",
    ),
    KeyDoc(
        "{ns}:warm:{<session>}",
        "hash",
        False,
        "Warm results by provider, each with the generation it answers.",
    ),
    KeyDoc(
        "{ns}:retracted:{<owner>}",
        "hash",
        False,
        "A mark by provider, which changes when it forgets what was taken back: warm results of "
        "the owner with another mark are not read.",
    ),
    KeyDoc(
        "{ns}:recalls:{<provider>}",
        "hash",
        False,
        "How the provider's recalls went: failures in a row and in all, the last error, skipped.",
    ),
    KeyDoc(
        "{ns}:asks:{<provider>}",
        "list",
        False,
        "What prompts ask the provider now, the newest first; in the Redis of the jobs.",
    ),
    KeyDoc(
        "{ns}:answers:{<ask>}",
        "list",
        False,
        "The providers' replies to one of these; its asker blocks on it. In the Redis of the jobs.",
    ),
    KeyDoc(
        "{ns}:prompts:{<provider>}",
        "hash",
        False,
        "How prompts were answered by the provider: warm, fresh, late, with nothing that fits, and "
        "how long they waited.",
    ),
    KeyDoc(
        "{ns}:work:{<provider>}",
        "hash",
        False,
        "What workers counted of their work for the provider: tries that failed, events that came "
        "again, writes that were refused, how long calls took, how old events were when applied.",
    ),
    KeyDoc(
        "{ns}:rebuilding:<provider>",
        "string",
        False,
        "Who rebuilds or verifies the provider now; expires when the command was killed.",
    ),
    KeyDoc(
        "{ns}:{{ns}:<hash>}:fence:<provider>",
        "string",
        False,
        "The same, in the slot of each hash that such a command changes (`instances`, `live`, "
        "`held`): a write is refused without it. Expires a little earlier.",
    ),
    KeyDoc(
        "{ns}:budget:{<provider>}",
        "hash",
        False,
        "How many calls the provider may still make, where `calls_per_second` or `daily_budget` "
        "bounds them.",
    ),
    KeyDoc(
        "{ns}:spent:{<provider>}:<what>",
        "hash",
        False,
        "How often the provider has today spent what costs (questions to a model), over all "
        "workers, where its own options bound that.",
    ),
    KeyDoc(
        "{ns}:paused:{<provider>}",
        "string",
        False,
        "While it is there, no recall is asked of the provider: several failed in a row.",
    ),
)


def is_permanent(key: str, namespace: str) -> bool:
    """Say whether a key may live without a time to live (the leak check of the tests asks)."""
    return any(_pattern(doc, namespace).fullmatch(key) for doc in TABLE if doc.permanent)


def _pattern(doc: KeyDoc, namespace: str) -> re.Pattern[str]:
    template = re.escape(doc.template)
    template = template.replace(re.escape("{ns}"), re.escape(namespace))
    template = template.replace(re.escape("{pNN}"), r"\{p\d{2,}\}")
    return re.compile(template.replace(re.escape("<provider>"), ".+"))
