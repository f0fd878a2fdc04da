"""The table of Redis keys: the purpose of each key, and whether it may live for ever."""

import re
from functools import cache

import msgspec


class KeyDoc(msgspec.Struct, frozen=True):
    """One line of the key table: a key's purpose and type, and whether it may live for ever."""

    template: str
    type: str
    permanent: bool
    meaning: str


TABLE: tuple[KeyDoc, ...] = (
    KeyDoc(
        "{ns}:meta",
        "hash",
        True,
        "Written once, when the log is created: the number of partitions, the format and the id of "
        "the log.",
    ),
    KeyDoc(
        "{ns}:losses",
        "hash",
        True,
        "Losses that workers saw and the log itself no longer shows: a wiped log, a lost tail. An "
        "operator deletes a field when the loss is dealt with.",
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
        "Heartbeats of workers by id; any worker removes an entry that is older than a minute.",
    ),
    KeyDoc(
        "{ns}:api-keys",
        "hash",
        True,
        "Keys of the gateway by id: whom they reach, for what, until when, and the digest of their "
        "secret.",
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
        "with the part of the history that it takes.",
    ),
    KeyDoc(
        "{ns}:retries",
        "hash",
        True,
        "The last request of an operator to retry at once what waits for its next try, by "
        "instance.",
    ),
    KeyDoc(
        "{ns}:live",
        "hash",
        True,
        "By provider: the instance that serves its recalls and tools, if it is not the one with "
        "the provider's name; the instance that served before; and during a swap, the one that "
        "joins or leaves.",
    ),
    KeyDoc(
        "{ns}:pauses",
        "hash",
        True,
        "Instances whose lanes are paused, by name: why, since when and by whom; and in addition "
        "those that a command pauses for a moment.",
    ),
    KeyDoc(
        "{ns}:canary",
        "string",
        False,
        "When a canary last came through all lanes that it met (milliseconds).",
    ),
    KeyDoc(
        "{ns}:archive",
        "hash",
        True,
        "What archivers report: by partition what is sealed (segments, events, bytes); by worker "
        "where it archives and what keeps it from doing so. A worker that is silent for a minute "
        "is removed.",
    ),
    KeyDoc(
        "{ns}:curator",
        "hash",
        True,
        "The curator: its last 100 runs (`run:<id>`), and when the next one is `due`.",
    ),
    KeyDoc(
        "{ns}:curator:lease",
        "string",
        False,
        "The curator's run that works now; expires unless renewed.",
    ),
    KeyDoc(
        "{ns}:{pNN}:log",
        "stream",
        True,
        "The partition's events: `n` (dense number) and `e` (envelope), or `r` instead of `e` for "
        "an event that came again.",
    ),
    KeyDoc(
        "{ns}:{pNN}:state",
        "hash",
        True,
        "The partition's last dense number; the number up to which it is archived and may be "
        "trimmed (`sealed`, with its `sealed_entry` and the server's run then, `sealed_run`); the "
        "numbers that only the archive had when "
        "Redis came back older (`set_back`); counts of duplicates and conflicts; when its "
        "window of event ids began; the run of the server on which it was created; who last asked "
        "a replica to confirm (`confirmed`); and where the next look for silent producers begins "
        "(`swept`).",
    ),
    KeyDoc(
        "{ns}:{pNN}:producers",
        "hash",
        True,
        "The last sequence taken from each producer; under `<id>:heard` the time, and `rests` if "
        "the producer will send none of that again. Both are removed with its spool, or after a "
        "silence of `dedupe_window`, or of thirty times that if the producer does not rest.",
    ),
    KeyDoc(
        "{ns}:{pNN}:seen:new",
        "hash",
        True,
        "Event ids of the current window and their payload digests (G2).",
    ),
    KeyDoc(
        "{ns}:{pNN}:seen:old",
        "hash",
        True,
        "The previous window; deleted when the next one begins.",
    ),
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
        "Order keys that wait behind a dead letter, each with the position of its last parked "
        "event and the number of its parked events.",
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
        "Changes of dead letters, by entry: later refusals, an operator's edit.",
    ),
    KeyDoc(
        "{ns}:{pNN}:reply:<event>",
        "hash",
        False,
        "Answers of providers to an event whose publisher waits, or to a reading tool's call.",
    ),
    KeyDoc(
        "{ns}:redo:<provider>",
        "hash",
        True,
        "Requests of operators about dead letters (at most 256); the owners of the lanes carry "
        "them out and remove them.",
    ),
    KeyDoc(
        "{ns}:want:{<session>}",
        "hash",
        False,
        "The newest recall that a session asked for: generation, query, scope, positions. For an "
        "agent, person and workspace together: the request for the text of their system prompts.",
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
        "By provider, a mark that changes when the provider forgets retracted events or is purged: "
        "the owner's warm results with another mark are not read.",
    ),
    KeyDoc(
        "{ns}:recalls:{<provider>}",
        "hash",
        False,
        "The provider's recalls: failures in a row and in all, the last error, skipped recalls.",
    ),
    KeyDoc(
        "{ns}:asks:{<provider>}",
        "list",
        False,
        "Questions of prompts to the provider, the newest first; in the Redis of the jobs.",
    ),
    KeyDoc(
        "{ns}:answers:{<ask>}",
        "list",
        False,
        "The providers' replies to one of these questions, for which its asker blocks; in the "
        "Redis of the jobs.",
    ),
    KeyDoc(
        "{ns}:prompts:{<provider>}",
        "hash",
        False,
        "How the provider answered prompts: warm, fresh, late, with nothing that fits; and how "
        "long prompts waited.",
    ),
    KeyDoc(
        "{ns}:work:{<provider>}",
        "hash",
        False,
        "What workers counted of their work for the provider: failed tries, repeated events, "
        "refused writes, how long calls took, and how old events were when they were applied.",
    ),
    KeyDoc(
        "{ns}:rebuilding:<provider>",
        "string",
        False,
        "The command that rebuilds or verifies the provider now; expires if the command is killed.",
    ),
    KeyDoc(
        "{ns}:deriving:<provider>",
        "string",
        False,
        "The worker that derives from the provider's facts now; expires if the worker is killed.",
    ),
    KeyDoc(
        "{ns}:{{ns}:<hash>}:fence:<provider>",
        "string",
        False,
        "The same, in the slot of each hash that such a command changes (`instances`, `live`, "
        "`pauses`): without it the command's writes are refused. Expires a little earlier.",
    ),
    KeyDoc(
        "{ns}:budget:{<provider>}",
        "hash",
        False,
        "How many calls to the provider workers may still make, if `calls_per_second` or "
        "`daily_budget` limits them.",
    ),
    KeyDoc(
        "{ns}:spent:{<provider>}:<what>",
        "hash",
        False,
        "How often all workers together have used something costly for the provider today "
        "(questions to a model), if its own options limit that.",
    ),
    KeyDoc(
        "{ns}:{model}",
        "hash",
        False,
        "Calls and tokens of the model in this hour and month, which limit is reached, and since "
        "when the model fails.",
    ),
    KeyDoc(
        "{ns}:{model}:people",
        "hash",
        False,
        "The same of this month, by a digest of the person's name.",
    ),
    KeyDoc(
        "{ns}:paused:{<provider>}",
        "string",
        False,
        "As long as it exists, the provider gets no recalls, because several failed in a row.",
    ),
)


def is_permanent(key: str, namespace: str) -> bool:
    """Return whether a key may exist without a time to live, for the leak check of the tests."""
    return any(_pattern(doc, namespace).fullmatch(key) for doc in TABLE if doc.permanent)


@cache
def _pattern(doc: KeyDoc, namespace: str) -> re.Pattern[str]:
    template = re.escape(doc.template)
    template = template.replace(re.escape("{ns}"), re.escape(namespace))
    template = template.replace(re.escape("{pNN}"), r"\{p\d{2,}\}")
    return re.compile(template.replace(re.escape("<provider>"), ".+"))
