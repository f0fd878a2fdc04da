"""What providers add to a compression's summary: durable first, then waited for, never for long."""

from collections.abc import Callable
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.processes.stalls import MARGIN
from helpers.providers.recording import texts
from helpers.redis.log import reply_keys
from helpers.stories.scenario import home, thread_worker, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from memorybus.registry.roster import Roster

WAIT_SECONDS = 20.0
DEADLINE = 5.0
"""Seconds in which a provider that does not hang has answered, also on a busy machine."""
MESSAGES = ({"role": "user", "content": "walnut"}, {"role": "assistant", "content": "ok"})

Make = Callable[..., Settings]


def several(**kinds: Any) -> dict[str, Any]:
    """Return the settings of some providers: a kind, or its table, by name."""
    tables = {
        name: kind if isinstance(kind, dict) else {"kind": kind} for name, kind in kinds.items()
    }
    tables = {n: t | {"kind": f"helpers.providers.tooling:{t['kind']}"} for n, t in tables.items()}
    return {"providers": tuple(tables), "provider": tables}


@pytest.fixture(name="make")
def _make(redis_url: str, make_settings: MakeSettings) -> Make:
    """Make settings on the shared server."""
    return lambda **options: make_settings(url=redis_url, **options)


@pytest.mark.parametrize("kind", ["Noting", "NotingSide", "NotingOnce"])
def test_providers_contribute_what_they_return(kind, make):
    """Labelled by provider, escaped, as soon as all have answered; with every kind of applier."""
    settings = make(**several(a=kind, b="Noting"))
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        begun = SYSTEM.monotonic()
        text = bus.session("s", warm=False).contributions(MESSAGES, timeout=WAIT_SECONDS)
    assert text == "From a:\nkept 2 {lt}messages{gt}\n\nFrom b:\nkept 2 {lt}messages{gt}"
    assert SYSTEM.monotonic() - begun < WAIT_SECONDS / 2, "it did not wait for its deadline"
    assert texts(home(settings, "a")) == ["walnut ok"]


def test_a_provider_that_hangs_costs_only_its_own_text(make, tmp_path, witness):
    """G9: the other's contribution comes back within the deadline."""
    hangs = tmp_path / "hangs"
    hangs.touch()
    settings = make(**several(deaf={"kind": "Deaf", "while": str(hangs)}, quick="Noting"))
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        text, took = witness.timed(lambda: session.contributions(MESSAGES, timeout=DEADLINE))
        hangs.unlink()
    assert text == "From quick:\nkept 2 {lt}messages{gt}"
    assert took < DEADLINE + MARGIN


def test_messages_split_over_events_all_contribute(make):
    """More messages than one event carries: each event's answer is part of the text."""
    settings = make(**several(a="NotingOnce"), event_max_bytes=2_000)
    many = [{"role": "user", "content": f"{n} " + "x" * 700} for n in range(3)]
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        text = bus.session("s", warm=False).contributions(many, timeout=WAIT_SECONDS)
    assert text == "From a:\n" + "\n".join(["kept 1 {lt}messages{gt}"] * 3)


def test_nobody_is_waited_for_who_is_not_there(make, redis_client):
    """Without a live worker the text is empty at once; the event waits in the log (G1)."""
    settings = make(**several(a="Noting"))
    with MemoryBus.connect(settings) as bus:
        assert bus.flush("logged", WAIT_SECONDS)
        begun = SYSTEM.monotonic()
        assert bus.session("s", warm=False).contributions(MESSAGES, timeout=WAIT_SECONDS) == ""
        assert SYSTEM.monotonic() - begun < WAIT_SECONDS / 2
        assert bus.flush("logged", WAIT_SECONDS)
    with thread_worker(settings):
        wait_applied(redis_client, settings, "a")
    assert texts(home(settings, "a")) == ["walnut ok"]


@pytest.mark.parametrize("publishes", ["contributions", "compressing"])
def test_a_compression_leaves_out_what_was_undone(publishes, make, redis_client):
    """A window that still has an undone turn teaches providers nothing of it again."""
    settings = make(**several(a="Noting"))
    pin = ({"role": "user", "content": "my PIN is 4711"}, {"role": "assistant", "content": "ok"})
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.turn_completed("walnut", "ok")
        receipt = session.turn_completed("my PIN is 4711", "ok", messages=pin)
        session = bus.session("s", warm=False).undo(receipt)
        getattr(session, publishes)((*MESSAGES, *pin))
        session.turn_completed("my PIN is 4711", "I keep it.")
        getattr(session, publishes)(pin)
        assert bus.flush("logged", WAIT_SECONDS)
        wait_applied(redis_client, settings, "a")
    said = texts(home(settings, "a"))
    assert said == [
        "walnut",
        "my PIN is 4711",
        "walnut ok ok",
        "my PIN is 4711",
        "my PIN is 4711 ok",
    ]


def test_compressing_asks_for_no_reply(make, redis_client):
    """Who does not wait costs nobody a key."""
    settings = make(**several(a="Noting"))
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).compressing(MESSAGES)
        assert bus.flush("logged", WAIT_SECONDS)
        wait_applied(redis_client, settings, "a")
        assert Roster(redis_client, Keys(settings.namespace)).contributing_providers() == ["a"]
    assert texts(home(settings, "a")) == ["walnut ok"]
    assert reply_keys(redis_client, settings) == []


def test_a_refused_compression_ends_the_wait(make):
    """A provider that refuses the event is not waited for any longer, and adds nothing (G6)."""
    settings = make(**several(a="Noting"))
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        begun = SYSTEM.monotonic()
        refused = [{"role": "user", "content": "!permanent"}]
        assert bus.session("s", warm=False).contributions(refused, timeout=WAIT_SECONDS) == ""
        assert SYSTEM.monotonic() - begun < WAIT_SECONDS / 2


@pytest.mark.parametrize("state", ["down", "frozen"])
def test_without_redis_the_event_is_durable_and_the_wait_is_bounded(
    state, make_redis, make_settings, witness
):
    """G1, G9: fsynced first, then no longer than the deadline; applied when Redis is back."""
    server = make_redis(appendonly="yes", appendfsync="always")
    settings = make_settings(url=server.url, **several(a="Noting"))
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        assert bus.flush("logged", WAIT_SECONDS)
        (server.kill if state == "down" else server.freeze)()
        text, took = witness.timed(lambda: session.contributions(MESSAGES, timeout=1.0))
        assert text == ""
        assert took < 1.0 + MARGIN
        assert bus.unsent == 1
        (server.start if state == "down" else server.thaw)()
        assert bus.flush("logged", WAIT_SECONDS)
        with thread_worker(settings):
            wait_applied(server.client(), settings, "a")
    assert texts(home(settings, "a")) == ["walnut ok"]
