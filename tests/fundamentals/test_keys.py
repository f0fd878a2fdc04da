"""Order keys, partitions and Redis keys."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.events import Scope
from memorybus.redis.key_table import is_permanent
from memorybus.redis.keys import (
    Keys,
    lane_name,
    partition_of,
    recall_slot,
    session_key,
    store_key,
)
from redis.crc import key_slot

ids = st.text(min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("key", "partitions", "expected"),
    [
        ("123456789", 1 << 10, 0xCBF43926 % 1024),
        ("session:s1", 16, 4),
        ("session:é😀", 16, 13),
        (session_key(Scope(), "s1"), 16, 6),
    ],
)
def test_partitions_never_move(key, partitions, expected):
    """A key's partition is the same in every release: CRC-32 modulo the count."""
    assert partition_of(key, partitions) == expected


@given(st.text(), st.integers(1, 1024))
def test_every_key_has_a_partition(key, partitions):
    """Any text, surrogates included, has a partition within the count."""
    assert 0 <= partition_of(key, partitions) < partitions


def test_stores_belong_to_agent_and_person():
    """`memory` is keyed by the agent's profile, `user` by the person alone."""
    scope = Scope(agent="gardener", user="ann")
    assert store_key("memory", scope) == "store:gardener:memory"
    assert store_key("user", scope) == "store:ann:user"


def test_a_session_key_never_moves():
    """G3: a lineage's key is the same in every release, and holds no text of its scope."""
    gardener = Scope(agent="gardener", user="ann", workspace="é😀", platform="cli")
    assert session_key(Scope(), "s1") == "session:aa6edef1a7211261:s1"
    assert session_key(gardener, "s1") == "session:c09b61cc883ad8b1:s1"


@given(st.tuples(ids, ids, st.text()), st.tuples(ids, ids, st.text()), ids)
def test_sessions_of_different_owners_share_no_key(one, other, root):
    """G3, G6: equal ids of two agents, persons or workspaces have two keys; a platform has none."""
    mine, theirs = (session_key(Scope(*owner), root) for owner in (one, other))
    assert (mine == theirs) == (one == other)
    assert mine == session_key(Scope(*one, platform="elsewhere"), root)
    kind, slot, rest = mine.split(":", 2)
    assert (kind, rest) == ("session", root)
    assert re.fullmatch("[0-9a-f]{16}", slot)


@given(ids, ids, ids, ids)
def test_slots_of_different_owners_never_meet(a, b, c, d):
    """Equal session ids of two users have two slots, wherever the text is cut."""
    one, other = Scope(agent=a, user=b), Scope(agent=c, user=d)
    if (a, b) != (c, d):
        assert recall_slot(one, "s") != recall_slot(other, "s")
    assert recall_slot(one, "s") == recall_slot(one, "s")
    assert set(recall_slot(one, "s")) <= set("0123456789abcdef")


def test_keys_of_a_partition_share_their_hash_tag():
    """Everything a script touches at once lies in one slot of Redis Cluster."""
    keys = Keys("mb")
    of_partition = [
        keys.log(7),
        keys.state(7),
        keys.producers(7),
        *keys.seen(7),
        keys.lane(7, "p"),
        keys.lease(7, "p"),
        keys.parked(7, "p"),
        keys.dead(7, "p"),
    ]
    assert all("{p07}" in key for key in of_partition)
    assert "{abc}" in keys.want("abc")
    assert "{abc}" in keys.warm("abc")
    assert lane_name(7) == "p07"


@pytest.mark.parametrize("provider", ["p", "{p}", "p@1"])
def test_a_fence_stands_beside_what_it_guards(provider):
    """G8: a hash of instances and the fence of a command are seen by one script in a cluster."""
    keys = Keys("mb")
    for guarded in (keys.instances, keys.live, keys.pauses):
        fence = keys.fence(guarded, provider)
        assert key_slot(fence.encode()) == key_slot(guarded.encode())
        assert fence.startswith("mb:")
        assert not is_permanent(fence, "mb")


def test_only_listed_keys_live_for_ever():
    """The leak check knows every permanent key, and takes no other for one."""
    keys = Keys("mb")
    permanent = [keys.meta, keys.providers, keys.workers, keys.log(3), keys.lane(3, "x")]
    assert all(is_permanent(key, "mb") for key in permanent)
    passing = [keys.lease(3, "x"), keys.want("s"), keys.warm("s"), "mb:other", "x:meta"]
    assert not any(is_permanent(key, "mb") for key in passing)
