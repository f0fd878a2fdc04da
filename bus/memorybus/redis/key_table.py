"""The table of Redis keys: type and purpose of each key, and whether it may live for ever."""

import re
from functools import cache

PERMANENT = (
    # hash: written once, when the log is created: the number of partitions, the format and the id
    # of the log
    "{ns}:meta",
    # hash: losses that workers saw and the log itself no longer shows: a wiped log, a lost tail.
    # An operator deletes a field when the loss is dealt with.
    "{ns}:losses",
    # hash: provider instances by name: kind, delivery, placement, order of recall
    "{ns}:providers",
    # hash: the tools that provider instances declare, by name: schemas (at most 64 KiB), and which
    # of them only read
    "{ns}:tools",
    # hash: heartbeats of workers by id; any worker removes an entry that is older than a minute
    "{ns}:workers",
    # hash: keys of the gateway by id: whom they reach, for what, until when, and the digest of
    # their secret
    "{ns}:api-keys",
    # hash: where the state of `local` providers lies: place, host and path, by provider
    "{ns}:homes",
    # hash: instances that no settings name, by name: copies that a replay or a rebuild fills, each
    # with the part of the history that it takes
    "{ns}:instances",
    # hash: the last request of an operator to retry at once what waits for its next try, by
    # instance
    "{ns}:retries",
    # hash: by provider: the instance that serves its recalls and tools, if it is not the one with
    # the provider's name; the instance that served before; and during a swap, the one that joins
    # or leaves
    "{ns}:live",
    # hash: instances whose lanes are paused, by name: why, since when and by whom; and in addition
    # those that a command pauses for a moment
    "{ns}:pauses",
    # hash: what archivers report: by partition what is sealed (segments, events, bytes); by worker
    # where it archives and what keeps it from doing so. A worker that is silent for a minute is
    # removed.
    "{ns}:archive",
    # hash: the curator: its last 100 runs (`run:<id>`), and when the next one is `due`
    "{ns}:curator",
    # stream: the partition's events: `n` (dense number) and `e` (envelope), or `r` instead of `e`
    # for an event that came again
    "{ns}:{pNN}:log",
    # hash: the partition's last dense number; the number up to which it is archived and may be
    # trimmed (`sealed`, with its `sealed_entry` and the server's run then, `sealed_run`); the
    # numbers that only the archive had when Redis came back older (`set_back`); counts of
    # duplicates and conflicts; when its window of event ids began; the run of the server on which
    # it was created; who last asked a replica to confirm (`confirmed`); and where the next look
    # for silent producers begins (`swept`)
    "{ns}:{pNN}:state",
    # hash: the last sequence taken from each producer; under `<id>:heard` the time, and `rests` if
    # the producer will send none of that again. Both are removed with its spool, or after a
    # silence of `dedupe_window`, or of thirty times that if the producer does not rest.
    "{ns}:{pNN}:producers",
    # hash: event ids of the current window and their payload digests (G2)
    "{ns}:{pNN}:seen:new",
    # hash: the previous window; deleted when the next one begins
    "{ns}:{pNN}:seen:old",
    # hash: a lane: epoch (only grows), checkpoint (entry, n), when it last moved, how many events
    # are parked, how many an operator discarded
    "{ns}:{pNN}:lane:<provider>",
    # hash: order keys that wait behind a dead letter, each with the position of its last parked
    # event and the number of its parked events
    "{ns}:{pNN}:parked:<provider>",
    # stream: dead letters and the later events of their keys, in order
    "{ns}:{pNN}:dead:<provider>",
    # hash: changes of dead letters, by entry: later refusals, an operator's edit
    "{ns}:{pNN}:amended:<provider>",
    # hash: requests of operators about dead letters (at most 256); the owners of the lanes carry
    # them out and remove them
    "{ns}:redo:<provider>",
)
"""Keys that may live for ever."""

EXPIRING = (
    # string: when a canary last came through all lanes that it met (milliseconds)
    "{ns}:canary",
    # string: the curator's run that works now; expires unless renewed
    "{ns}:curator:lease",
    # string: who owns the lane now: `epoch:worker`. Expires unless renewed.
    "{ns}:{pNN}:lease:<provider>",
    # hash: answers of providers to an event whose publisher waits, or to a reading tool's call
    "{ns}:{pNN}:reply:<event>",
    # hash: the newest recall that a session asked for: generation, query, scope, positions. For an
    # agent, person and workspace together: the request for the text of their system prompts.
    "{ns}:want:{<session>}",
    # hash: warm results by provider, each with the generation it answers
    "{ns}:warm:{<session>}",
    # hash: by provider, a mark that changes when the provider forgets retracted events or is
    # purged: the owner's warm results with another mark are not read
    "{ns}:retracted:{<owner>}",
    # hash: the provider's recalls: failures in a row and in all, the last error, skipped recalls
    "{ns}:recalls:{<provider>}",
    # list: questions of prompts to the provider, the newest first; in the Redis of the jobs
    "{ns}:asks:{<provider>}",
    # list: the providers' replies to one of these questions, for which its asker blocks; in the
    # Redis of the jobs
    "{ns}:answers:{<ask>}",
    # hash: how the provider answered prompts: warm, fresh, late, with nothing that fits; and how
    # long prompts waited
    "{ns}:prompts:{<provider>}",
    # hash: what workers counted of their work for the provider: failed tries, repeated events,
    # refused writes, how long calls took, and how old events were when they were applied
    "{ns}:work:{<provider>}",
    # string: the command that rebuilds or verifies the provider now; expires if the command is
    # killed
    "{ns}:rebuilding:<provider>",
    # string: the worker that derives from the provider's facts now; expires if the worker is
    # killed
    "{ns}:deriving:<provider>",
    # string: the same, in the slot of each hash that such a command changes (`instances`, `live`,
    # `pauses`): without it the command's writes are refused. Expires a little earlier.
    "{ns}:{{ns}:<hash>}:fence:<provider>",
    # hash: how many calls to the provider workers may still make, if `calls_per_second` or
    # `daily_budget` limits them
    "{ns}:budget:{<provider>}",
    # hash: how often all workers together have used something costly for the provider today
    # (questions to a model), if its own options limit that
    "{ns}:spent:{<provider>}:<what>",
    # hash: calls and tokens of the model in this hour and month, which limit is reached, and since
    # when the model fails
    "{ns}:{model}",
    # hash: the same of this month, by a digest of the person's name
    "{ns}:{model}:people",
    # string: as long as it exists, the provider gets no recalls, because several failed in a row
    "{ns}:paused:{<provider>}",
)
"""Keys that have a time to live."""


def is_permanent(key: str, namespace: str) -> bool:
    """Return whether a key may exist without a time to live, for the leak check of the tests."""
    return any(_pattern(template, namespace).fullmatch(key) for template in PERMANENT)


@cache
def _pattern(template: str, namespace: str) -> re.Pattern[str]:
    pattern = re.escape(template)
    pattern = pattern.replace(re.escape("{ns}"), re.escape(namespace))
    pattern = pattern.replace(re.escape("{pNN}"), r"\{p\d{2,}\}")
    return re.compile(pattern.replace(re.escape("<provider>"), ".+"))
