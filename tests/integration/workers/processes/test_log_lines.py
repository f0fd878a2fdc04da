"""What a worker writes: lines that can be filtered by their fields, and no credential anywhere."""

import json
from typing import Any

import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from helpers.providers.leaking import OWN, SECRETS
from helpers.stories.scenario import NAME, environ, partition
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.events import Scope
from memorybus.health.monitor import read_status
from memorybus.recall.queue import queue_name
from memorybus.redis.keys import Keys, session_key
from rq import Queue
from rq.serializers import JSONSerializer

KINDS = ["LeakyBlind", "LeakyKeyed", "LeakySide", "LeakyTransactional"]
POISONED, WELL, DOWN = "poisoned", "well", "down"


def leaky(make_settings: MakeSettings, kind: str, **more: Any) -> Settings:
    """Return the settings of a leaking provider."""
    table = {"kind": f"helpers.providers.leaking:{kind}", "api_key": OWN}
    return make_settings(providers=(NAME,), provider={NAME: table}, **more)


def start(spawn: Spawn, settings: Settings, jobs: int = 0) -> Child:
    """Start a worker that logs JSON, and wait until it is ready."""
    words = ("worker", "--jobs", str(jobs))
    env = environ(settings) | {"MEMORYBUS_LOG": "json"}
    child = spawn("-m", "memorybus_workers", *words, env=env)
    child.wait_output('"ready":true')
    return child


def lines(child: Child, text: str) -> list[dict[str, Any]]:
    """Return the lines of the log that hold a text; every line of the process is JSON."""
    said = child.output()
    whole = said[: said.rfind("\n") + 1]
    found = [json.loads(line) for line in whole.splitlines()]
    return [line for line in found if text in line.get("event", "")]


def awaited(child: Child, text: str, session: str = "") -> dict[str, Any]:
    """Return the first line that holds a text, and is about a session if one is named."""

    def there() -> list[dict[str, Any]]:
        return [one for one in lines(child, text) if session in ("", one.get("session"))]

    return wait_until(there, f"a line that says {text!r}")[0]


def place(client: redis.Redis, settings: Settings, session: str) -> dict[str, Any]:
    """Return the fields of a session's lane."""
    number = partition(settings, session)
    epoch: Any = client.hget(Keys(settings.namespace).lane(number, NAME), "epoch")
    return {"provider": NAME, "partition": number, "epoch": int(epoch)}


@pytest.mark.parametrize("kind", KINDS)
def test_lines_carry_what_they_are_about_and_no_credential(
    redis_client, make_settings, spawn, tmp_path, kind
):
    """G6, G9: a parked event and a backend that is down are lines one can filter, and show."""
    settings = leaky(make_settings, kind)
    child = start(spawn, settings)
    gone = tmp_path / "gone"
    gone.touch()
    with MemoryBus.connect(settings) as bus:
        ids = {
            name: bus.session(name, warm=False).turn_completed(text, "").event_id
            for name, text in ((WELL, "hello"), (POISONED, "!poison"))
        }
        parked = awaited(child, "is parked")
        asked = awaited(child, "asked with", WELL)
        ids[DOWN] = bus.session(DOWN, warm=False).turn_completed(f"!down={gone}", "").event_id
        waits = awaited(child, "nothing is parked")
        failing = wait_until(
            lambda: [one.failing for one in read_status(settings).providers if one.failing],
            "the status says why it waits",
        )
    for line, name in ((parked, POISONED), (asked, WELL)):
        about = place(redis_client, settings, name) | {
            "event_id": ids[name],
            "session": name,
            "key": session_key(Scope(), name),
        }
        assert about.items() <= line.items()
    assert place(redis_client, settings, DOWN).items() <= waits.items()
    assert "503 of https://***@crm.example" in failing[0]
    assert "400 of https://***@crm.example" in parked["event"]
    taken = awaited(child, "lanes taken")
    assert taken["provider"] == NAME
    assert "partition" not in taken
    nobody_tells(child.output(), str(failing), str(everything(redis_client, settings)))


def test_what_a_recall_failed_of_is_kept_without_credentials(redis_client, make_settings, spawn):
    """G9: neither the log, nor what people read of a recall, nor RQ's own record has one."""
    settings = leaky(make_settings, "LeakyKeyed")
    child = start(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session(WELL, warm=False)
        session.queue_prefetch("what?")
        line = awaited(child, "failed: RuntimeError: 500 of")
    assert {"provider": NAME, "session": WELL}.items() <= line.items()
    name = queue_name(settings.namespace, NAME)
    queue = Queue(name, connection=redis_client, serializer=JSONSerializer)
    jobs = queue.failed_job_registry.get_job_ids()
    results = [job.latest_result() for job in map(queue.fetch_job, jobs) if job is not None]
    kept = [str(result.exc_string) for result in results if result is not None]
    assert any("RuntimeError: 500 of https://***@crm.example" in one for one in kept)
    nobody_tells(child.output(), *kept, str(everything(redis_client, settings)))


def test_what_ends_a_process_is_a_line(spawn):
    """A traceback that nobody caught is masked, and JSON where JSON is asked for."""
    program = (
        "import threading; from memorybus_workers import logs; logs.set_up('json', secrets={%r})\n"
        "def fail(): raise ValueError('api_key=hunter2 and %s')\n"
        "one = threading.Thread(target=fail); one.start(); one.join(); fail()"
    )
    child = spawn("-c", program % (OWN, OWN))
    assert child.wait() == 1
    told = lines(child, "uncaught exception")
    assert ["ValueError: api_key=*** and ***" in one["exception"] for one in told] == [True, True]
    nobody_tells(child.output())


def everything(client: redis.Redis, settings: Settings) -> dict[str, Any]:
    """Return what stands in Redis, but for RQ's records, which are compressed."""
    found: dict[str, Any] = {}
    read = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1),
        b"stream": client.xrange,
    }
    for key in client.scan_iter(f"{settings.namespace}:*", count=1000):
        kind = client.type(key)
        if kind != b"none":  # it expired meanwhile
            found[str(key)] = read[kind](key)
    assert found
    return found


def nobody_tells(*texts: str) -> None:
    """No text has a secret."""
    for text in texts:
        assert [one for one in SECRETS if one in text] == []
