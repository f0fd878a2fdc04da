"""SIGKILL for agents: what `publish` returned for is applied in the end, once (G1, G2)."""

import random

import pytest
from helpers.faults.scale import times
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import (
    agent,
    environ,
    home,
    log_length,
    numbers,
    recorded,
    thread_worker,
    wait_applied,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings

AGENTS = times(30, quick=6)
CRASHES = [
    "publisher.after_spool:1",
    "publisher.after_spool:17",
    "sender.before_append:1",
    "sender.before_append:2",
    "sender.after_append:1",
    "sender.after_append:2",
]


@pytest.fixture(autouse=True)
def _adopt_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers of this process look for spools of the dead more often than they do."""
    monkeypatch.setattr("memorybus_workers.processes.worker._ADOPT_SECONDS", 0.3)


def turns(accepted: list[int]) -> list[str]:
    """Return the texts of some turns of the agent."""
    return [f"turn {number:05d}" for number in accepted]


def assert_books_balance(settings: Settings, accepted: list[int]) -> None:
    """Fail unless every accepted turn is applied once, in order, and at most the last one more.

    The agent may die between the insert and the word of it: that turn is allowed, not promised.
    """
    found = texts(home(settings))
    assert len(found) == len(set(found)), "an event was applied twice"
    assert set(turns(accepted)) <= set(found), "an accepted event is missing"
    assert len(found) <= len(accepted) + 1
    assert found == sorted(found), "out of order"


@pytest.mark.parametrize("crash", CRASHES)
def test_an_agent_dies_at_a_named_place(redis_client, make_settings, spawn, crash):
    """G1, G2: after a crash between spool and log, another process sends the rest, once."""
    settings = make_settings(**recorded("Transactional"))
    child = spawn(
        *("-m", "helpers.stories.scenario", "--count", "40", "--flush-every", "15", "--hold"),
        env=environ(settings) | {"MEMORYBUS_CRASH_AT": crash},
    )
    assert child.wait() == -9, child.output()
    accepted = numbers(child.output())
    with thread_worker(settings):
        wait_until(lambda: not list(settings.spool_dir.glob("*.db")), "its spool was adopted", 45)
        wait_applied(redis_client, settings)
    assert_books_balance(settings, accepted)
    assert log_length(redis_client, settings) == len(texts(home(settings))) + 1


def test_the_next_agent_goes_on_with_the_spool(redis_client, make_settings, spawn):
    """G3: the next agent of a host sends what the dead one left before its own events."""
    settings = make_settings(**recorded("Transactional"))
    first = spawn(
        *("-m", "helpers.stories.scenario", "--count", "30", "--hold"),
        env=environ(settings) | {"MEMORYBUS_CRASH_AT": "sender.after_append:1"},
    )
    assert first.wait() == -9, first.output()
    accepted = numbers(first.output())
    second = agent(spawn, settings, "--first", 30, "--count", 10, "--flush", 10)
    assert second.wait() == 0
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    assert_books_balance(settings, [*accepted, *numbers(second.output())])


def test_agents_die_while_redis_is_away(make_redis, make_settings, spawn):
    """G1: three agents killed during an outage lose nothing: their spools wait for Redis."""
    server = make_redis(appendonly="yes")
    server.kill()
    settings = make_settings(url=server.url, **recorded("Transactional"))
    agents = [
        agent(spawn, settings, "--session", f"s{n}", "--count", 30, "--hold") for n in range(3)
    ]
    for child in agents:
        child.wait_output("holding")
        child.kill()
    server.start()
    with thread_worker(settings):
        wait_until(lambda: len(texts(home(settings))) == 90, "all are applied", 45)
        wait_until(lambda: not list(settings.spool_dir.glob("*.db")), "no spool is left")


@pytest.mark.fault
@pytest.mark.timeout(300)
def test_agents_die_again_and_again(redis_client, make_settings, spawn, report):
    """G1, G2, G3: many agents in a row, each killed at a random place, and the books balance."""
    settings = make_settings(**recorded("Transactional"))
    rng = random.Random(7)
    accepted: list[int] = []
    first = 0
    with thread_worker(settings):
        for _ in range(AGENTS):
            place = rng.choice(CRASHES).partition(":")[0]
            child = spawn(
                *(
                    "-m",
                    "helpers.stories.scenario",
                    "--first",
                    str(first),
                    "--count",
                    "60",
                    "--flush-every",
                    "4",
                    "--hold",
                ),
                env=environ(settings) | {"MEMORYBUS_CRASH_AT": f"{place}:{rng.randint(1, 12)}"},
            )
            wait_until(
                lambda child=child: not child.alive or "holding" in child.output(),
                "it died or came to its end",
                30,
            )
            if child.alive:
                child.kill()
            accepted += numbers(child.output())
            first += 100
        with MemoryBus.connect(settings) as bus:
            assert bus.flush("logged", 60)
        wait_until(lambda: not list(settings.spool_dir.glob("*.db")), "no spool is left", 60)
        wait_applied(redis_client, settings)
    found = texts(home(settings))
    report(
        faults=AGENTS,
        events=len(accepted),
        lost=len(set(turns(accepted)) - set(found)),
        twice=len(found) - len(set(found)),
    )
    assert len(found) == len(set(found))
    assert set(turns(accepted)) <= set(found)
    assert len(found) <= len(accepted) + AGENTS
