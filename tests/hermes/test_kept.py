"""What the real Hermes must not lose: killed, without a Redis, leaving in a hurry."""

import statistics

import pytest
from helpers.hermes.hermes_agent import LONG_WORDS
from helpers.hermes.hermes_kills import killed
from helpers.hermes.hermes_model import keeps
from helpers.processes.stalls import Witness
from memorybus.clock import SYSTEM
from memorybus.events import (
    ContextCompressing,
    MemoryWritten,
    SessionEnded,
    SessionSwitched,
    TurnCompleted,
)

pytestmark = [pytest.mark.hermes, pytest.mark.releases, pytest.mark.timeout(240)]

EXIT = 1.0
"""Seconds more that leaving may take than without any memory."""


def test_a_kill_after_the_reply_loses_nothing(make_hermes_world):
    """SIGKILL at once after the answer: what the log lacks, reconcile finds, once (G1, G2)."""
    world = make_hermes_world()
    hermes = world.hermes()
    said = [f"before the kill {number}" for number in range(3)]
    for text in said:
        hermes.chat(text)
    hermes.kill()
    session = hermes.session
    world.reconcile()
    world.drain()
    world.wait_turns(session, *said)
    world.reconcile()
    world.drain()
    assert world.turns(session) == said


def test_kills_at_random_points_lose_nothing(make_hermes_world):
    """SIGKILL anywhere in a conversation: every turn the person saw answered is logged once."""
    world = make_hermes_world()
    told = killed(world.hermes(), 6)
    assert told, "every kill came before the first answer"
    world.reconcile()
    world.drain()
    assert set(told) <= set(world.turns())
    assert len(world.turns()) == len(set(world.turns()))


def test_without_a_redis_nothing_is_lost_and_nobody_waits(make_hermes_world):
    """G1, G9: Redis away for a whole session: no hook waits, and all of it comes afterwards."""
    world = make_hermes_world()
    world.server.kill()
    world.model.script(
        "remember the well",
        keeps("the well is deep"),
        "noted",
    )
    hermes = world.hermes()
    hermes.chat("remember the well")
    hermes.chat("a second turn")
    session = hermes.session
    hermes.leave()
    inline = world.home.hooks("on_turn_start", "on_memory_write", "sync_turn", "on_session_end")
    assert inline
    assert max(h.own_ms for h in inline) < 500, inline
    world.server.start()
    world.drain()
    assert world.turns(session) == ["remember the well", "a second turn"]
    [write] = world.events(MemoryWritten, session)
    assert write.event.content == "the well is deep"
    assert len(world.events(SessionEnded, session)) == 1


def test_only_one_turn_waits_for_a_frozen_redis(make_hermes_world):
    """G9: Redis hangs from turn to turn: the first recall waits for it, the later ones do not."""
    world = make_hermes_world()
    hermes = world.hermes()
    hermes.chat("before it hangs")
    hermes.do("settle")
    asked = len(world.home.hooks("prefetch"))
    world.server.freeze()
    said = [f"where is the ferry, {number}" for number in range(3)]
    for text in said:
        hermes.chat(text)
    world.server.thaw()
    took = [hook.own_ms for hook in world.home.hooks("prefetch")[asked:]]
    print("waited ms:", took)
    assert max(took[1:]) < 150, took
    world.wait_turns(hermes.session, "before it hangs", *said)


def test_leaving_with_a_frozen_redis_takes_no_longer(make_hermes_world):
    """G9: the backend hangs (SIGSTOP): leaving takes at most a second more than without memory."""
    world = make_hermes_world()
    plain = world.make_home("plain", "")
    agents = {"plain": world.hermes(plain), "bus": world.hermes()}
    witness = Witness(world.spawn, world.directory)
    seconds: dict[str, list[float]] = {name: [] for name in agents}
    for name, hermes in [*agents.items()] * 4:
        hermes.fork()
        hermes.chat("hello")
        world.server.freeze()
        begin = SYSTEM.now_ms()
        took = hermes.leave_fork()
        seconds[name].append(took - witness.stood(range(begin, SYSTEM.now_ms())))
        world.server.thaw()
    usual = {name: statistics.median(found) for name, found in seconds.items()}
    assert usual["bus"] <= usual["plain"] + EXIT, seconds


def test_compression_into_another_session(make_hermes_world):
    """Not in place: the session goes on under a new id, with the old one as parent and root."""
    world = make_hermes_world()
    world.home.config["compression"] = {"in_place": False}
    world.home.write_config()
    hermes = world.hermes()
    said = [f"long story part {number} {LONG_WORDS}".strip() for number in range(12)]
    old, new = hermes.compressed_after(said)
    world.wait_turns(new, "after the compression")
    world.wait_events(ContextCompressing, old)
    [switch] = world.wait_events(SessionSwitched, new)
    assert (switch.event.reason, switch.session.root) == ("compression", old)
    assert switch.session.parent == old
    assert world.turns(old) == said
    [turn] = world.events(TurnCompleted, new)
    assert turn.session.root == old
    assert not world.events(SessionEnded, old)
