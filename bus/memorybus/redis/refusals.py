"""The states in which a Redis answers but does not serve, each with its remedy; pure.

redis-py and scripts of Redis 6.2 change how such an answer begins, so it is known by its words.
"""

import re
from typing import Final

import msgspec


class Refusal(msgspec.Struct, frozen=True):
    """Why a server does not serve, to follow its name in a sentence, and what to do about it."""

    why: str
    remedy: str


_REFUSALS: Final[tuple[tuple[re.Pattern[str], Refusal], ...]] = tuple(
    (re.compile(words), Refusal(why, remedy))
    for words, why, remedy in (
        (
            "against a read only replica",
            "is a replica and takes no writes (READONLY)",
            "let `url` name the master, or promote this server: redis-cli replicaof no one",
        ),
        (
            "MISCONF",
            "cannot save its data, so it refuses writes (MISCONF)",
            "make room on the disk of Redis, and see its log for what it could not write",
        ),
        (
            "used memory > 'maxmemory'",
            "has no memory left, so it refuses writes (OOM)",
            "raise its maxmemory, or give its machine more memory",
        ),
        (
            "loading the dataset in memory",
            "is still loading its data (LOADING)",
            "wait: it serves once everything is read",
        ),
        (
            "CLUSTERDOWN|cluster is down|slot not served|serves slot",
            "lacks a shard of its cluster (CLUSTERDOWN)",
            "start the shard's nodes, or promote its replica: redis-cli cluster failover",
        ),
        (
            "Link with MASTER is down",
            "is a replica without its master (MASTERDOWN)",
            "start the master, or let `url` name another",
        ),
        (
            "NOREPLICAS",
            "has too few replicas, so it refuses writes (NOREPLICAS)",
            "start the replicas, or lower min-replicas-to-write",
        ),
        (
            r"BUSY \w+ is busy",
            "is held up by a script (BUSY)",
            "wait, or end the script: redis-cli script kill",
        ),
        (
            "max number of clients reached",
            "has too many connections",
            "raise its maxclients, or see who connects: redis-cli client list",
        ),
    )
)


def find_refusal(text: str) -> Refusal | None:
    """Return what an error's text says about the server's state; None if it says nothing."""
    return next((refusal for words, refusal in _REFUSALS if words.search(text)), None)
