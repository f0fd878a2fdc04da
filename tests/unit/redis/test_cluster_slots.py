"""Where the keys of a cluster lie: pure rules."""

import inspect
from typing import Any

import fakeredis
import pytest
from memorybus.redis.cluster import Cluster, group_by_slot, key_of
from memorybus.redis.cluster_nodes import Nodes, SlotMap, read_slots
from memorybus.redis.keys import Keys
from redis.crc import key_slot
from redis.exceptions import RedisError

GIVEN: dict[str, Any] = {"partition": 7, "provider": "rec"}


def keys_of_a_partition() -> dict[str, list[str]]:
    """Return the keys that each method of `Keys` with a partition makes."""
    keys = Keys("mb")
    made = {}
    for name, method in inspect.getmembers(keys, inspect.ismethod):
        wanted = inspect.signature(method).parameters
        if not name.startswith("_") and "partition" in wanted:
            found = method(**{parameter: GIVEN.get(parameter, "x") for parameter in wanted})
            made[name] = [found] if isinstance(found, str) else list(found)
    return made


def test_all_keys_of_a_partition_share_a_slot():
    """G2, G5: a script touches keys of one partition, so on a cluster they must lie together."""
    made = keys_of_a_partition()
    assert len(made) >= 8
    assert {key_slot(key.encode()) for found in made.values() for key in found} == {
        key_slot(b"{p07}")
    }


def test_the_recall_keys_of_a_session_share_a_slot():
    """G9: a result is stored by a script that also looks at the request."""
    keys = Keys("mb")
    assert key_slot(keys.want("s").encode()) == key_slot(keys.warm("s").encode())


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("HGET", "k", "f"), "k"),
        (("evalsha", "sha", 2, "k", "l", "arg"), "k"),
        ((b"XRANGE", "k", "-", "+"), "k"),
        (("XINFO GROUPS", "k"), "k"),
        (("XINFO", "GROUPS", "k"), "k"),
        (("CONFIG GET", "save"), None),
        (("INFO", "memory"), None),
        (("TIME",), None),
    ],
)
def test_a_command_goes_where_its_key_is(words, key):
    """The key stands behind the name, or where the command has it; some commands have none."""
    assert key_of(words) == key


@pytest.mark.parametrize("words", [("SCAN", 0), ("XREAD", "STREAMS", "k", "0"), ("WAIT", 1, 1)])
def test_half_an_answer_is_none(words):
    """What one shard could answer only for itself is refused, not answered for a part."""
    with pytest.raises(RedisError, match="group_by_shard"):
        key_of(words)


def test_the_map_of_slots_is_read():
    """Ranges come in any order, with or without replicas; a node may not know its own name."""
    reply = [
        [8000, 16383, [b"two", 7001, b"id"]],
        [0, 7999, [b"", 7000, b"id"], [b"three", 7002, b"id"]],
    ]
    slots = read_slots(reply, "one")
    assert (slots.owner(0), slots.owner(7999), slots.owner(8000)) == (
        "one:7000",
        "one:7000",
        "two:7001",
    )
    assert slots.replicated == {"one:7000"}
    assert slots.ids == {"one:7000": "id", "two:7001": "id"}


def test_a_gap_in_the_map_is_seen():
    """A slot that nobody serves has no owner, before, between and behind the ranges."""
    slots = SlotMap((10, 30), (19, 39), ("a", "b"), frozenset(), {})
    assert [slots.owner(slot) for slot in (9, 10, 19, 20, 30, 40)] == [
        None,
        "a",
        "a",
        None,
        "b",
        None,
    ]


def test_what_one_script_may_touch_lies_in_one_slot():
    """G5: leases are renewed by a script for each slot of a cluster, and of one server together."""
    keys = Keys("mb")
    leases = [keys.lease(partition, name) for name in "ab" for partition in (0, 1)]
    cluster = Cluster(Nodes([], {}, single=False))
    assert group_by_slot(cluster, leases, 9) == [leases[::2], leases[1::2]]
    assert group_by_slot(fakeredis.FakeRedis(), leases, 9) == [leases]
    assert group_by_slot(fakeredis.FakeRedis(), leases, 3) == [leases[:3], leases[3:]]
