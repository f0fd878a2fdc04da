"""Redis comes back without what a lane did last; its owner lives and has a call under way."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.making import MakeServer, MakeSettings
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import NAME, home, recorded, say, thread_worker, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys

LONG_LEASE: Any = {"partitions": 1, "lease": 60.0, "call_timeout": 40.0}
"""No test waits for a lease's end: an owner that is refused gives its lane back."""

every_kind = pytest.mark.parametrize("kind", ["KeyedSide", "LookupSide"])


@pytest.fixture(name="server")
def _server(make_redis: MakeServer) -> RedisServer:
    """Return a server that is killed back to its last copy: only `save` writes one."""
    return make_redis()


@pytest.fixture(name="settings")
def _settings(server: RedisServer, make_settings: MakeSettings, kind: str) -> Settings:
    return make_settings(url=server.url, **LONG_LEASE, **recorded(kind))


@pytest.fixture(name="under_way")
def _under_way(server: RedisServer, settings: Settings, tmp_path: Path) -> Iterator[Path]:
    """Have a worker with a call under way; return the file that keeps it there."""
    under_way = tmp_path / "under_way"
    under_way.touch()
    with thread_worker(settings):
        publish(settings, "slow", f"!hang={under_way} slow")
        wait_until(lambda: calls(home(settings)), "the call is under way")
        yield under_way


def publish(settings: Settings, session: str, *words: str) -> None:
    """Publish by a producer that is gone then, and sends nothing again."""
    mine = settings.data_dir.parent / session
    with MemoryBus.connect(msgspec.structs.replace(settings, data_dir=mine)) as bus:
        say(bus, session, *words)
        assert bus.flush(timeout=25)


@every_kind
def test_numbers_that_are_given_again_are_not_passed_over(server, settings, under_way, kind):
    """G3: what an owner knows as done are numbers; after a loss they are those of other events."""
    server.client().save()
    lost, new = ("b1", "b2", "b3"), ("c1", "c2", "c3")
    publish(settings, "lost", *lost)
    wait_until(lambda: set(lost) <= set(texts(home(settings))), "others are done")
    server.restart()
    publish(settings, "new", *new)
    under_way.unlink()
    wait_applied(server.client(), settings)
    assert [text for text in texts(home(settings)) if text in new] == list(new)


@every_kind
def test_a_dead_letter_that_was_lost_is_not_passed_over(
    server, settings, under_way, tmp_path, kind
):
    """G6: an owner that put an event aside just before the loss commits nothing behind it."""
    open_still, keys = tmp_path / "open_still", Keys(settings.namespace)
    open_still.touch()
    publish(settings, "bad", f"!refused_later={open_still} bad")
    wait_until(lambda: len(calls(home(settings))) > 1, "it is under way")
    server.client().save()
    open_still.unlink()
    wait_until(lambda: server.client().exists(keys.parked(0, NAME)), "it is put aside")
    server.restart()
    client = server.client()
    assert not client.exists(keys.parked(0, NAME))
    under_way.unlink()
    wait_applied(client, settings)
    assert client.xlen(keys.dead(0, NAME)) == 1
