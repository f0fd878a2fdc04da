"""Metrics of real workers, as Prometheus scrapes them."""

import http.client
import json
import re
from importlib.metadata import version

import redis
from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from helpers.redis.servers import unreachable_client
from helpers.stories.scenario import (
    NAME,
    environ,
    publish,
    recorded,
    say,
    thread_worker,
    wait_applied,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.events import Position
from memorybus.health.metrics import BusCollector
from memorybus.log.entry import OMITTED_ENVELOPES, LoggedEvent
from memorybus.redis.keys import Keys
from memorybus.registry.work import WorkCounter, read_work
from memorybus_workers.membership.presence import Presence
from prometheus_client.parser import text_string_to_metric_families

WORKER = ("-m", "memorybus_workers", "worker", "--jobs", "0", "--processes", "2")
HOSTILE = 'Jo "\n} x{y='


def serving(spawn: Spawn, settings: Settings) -> tuple[Child, str]:
    """Start workers that serve metrics; return their supervisor and where."""
    child = spawn(*WORKER, "--metrics", "127.0.0.1:0", env=environ(settings))
    child.wait_output('"ready":true')
    (line,) = (one for one in child.output().splitlines() if one.startswith("{"))
    return child, json.loads(line)["metrics"]


def scraped(where: str) -> dict[str, float]:
    """Scrape once; return the samples by name and label values."""
    connection = http.client.HTTPConnection(where, timeout=20)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def code(where: str, path: str) -> int:
    """Ask for a path; return the status code."""
    connection = http.client.HTTPConnection(where, timeout=20)
    connection.request("GET", path)
    found = connection.getresponse().status
    connection.close()
    return found


def test_a_running_bus_is_scraped(redis_client, make_settings, spawn):
    """G10: what workers of several processes did is told at one address, and is the truth."""
    settings = make_settings(**recorded("Transactional"))
    child, where = serving(spawn, settings)
    with MemoryBus.connect(settings) as bus:
        for name in ("a", "b", HOSTILE):
            say(bus, name, "one", "two")
        say(bus, "a", "!permanent", "behind")
        assert bus.flush(timeout=25)
    wait_applied(redis_client, settings)
    calls = f"memorybus_log_to_applied_seconds_count {NAME}"
    wait_until(lambda: scraped(where)[calls] >= 11, "the workers have reported")
    found = scraped(where)
    assert found["memorybus_up"] == 1
    assert found["memorybus_events_published_total"] == 11
    assert found[f"memorybus_applied_total applied {NAME}"] == 9
    assert found[f"memorybus_backlog_events {NAME}"] == 0
    assert (found[f"memorybus_parked_total {NAME}"], found[f"memorybus_dead_letters {NAME}"]) == (
        1,
        2,
    )
    assert found[f"memorybus_apply_duration_seconds_count {NAME}"] > 0
    assert found["memorybus_findings dead_letters critical"] == 1
    assert found[f"memorybus_workers {version('memorybus')}"] == 2
    assert not any("Jo" in name for name in found)
    assert [code(where, path) for path in ("/livez", "/readyz", "/")] == [200, 200, 404]
    assert child.terminate() == 0


def test_a_look_without_redis_says_so(make_settings):
    """G9: with Redis out of reach a scrape still answers, and says so."""
    settings = make_settings(url="redis://127.0.0.1:1/0", **recorded("Transactional"))
    families = BusCollector(settings).collect()
    assert [f.samples[0].value for f in families if f.name == "memorybus_up"] == [0]


def test_a_taken_port_ends_it_with_a_reason(redis_url, make_settings, spawn):
    """G10: who cannot serve what was asked for does not start without it; exit code 2."""
    settings = make_settings(url=redis_url, **recorded("Transactional"))
    _, where = serving(spawn, settings)
    second = spawn(*WORKER, "--metrics", where, env=environ(settings))
    assert second.wait() == 2
    assert re.search(f"metrics: {where}: .*choose another address", second.output())


def test_refused_writes_of_a_former_owner_are_counted(redis_client, make_settings):
    """G5: a commit that the fence refuses is one fenced write, reported with the next beat."""
    settings = make_settings(partitions=1, lease=30.0, **recorded("Blind"))
    keys = Keys(settings.namespace)
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        redis_client.hincrby(keys.lane(0, NAME), "epoch", 1)
        say(bus, "s", "one")
        wait_until(
            lambda: read_work(redis_client, keys, [NAME])[NAME].fenced >= 1,
            "a refused write is counted",
        )


def collected(settings: Settings) -> dict[str, float]:
    """Return what a scrape would show of the only provider, by metric."""
    return {
        sample.name: sample.value
        for family in BusCollector(settings).collect()
        for sample in family.samples
        if sample.labels == {"provider": NAME}
    }


def test_events_in_doubt_are_counted_when_they_come_again(redis_client, make_settings, spawn):
    """G4: what a killed owner may have applied is redelivered, and the metric says how many."""
    settings = make_settings(lease=2.0, call_timeout=1.0, partitions=1, **recorded("Blind"))
    publish(settings, "s", "one", "two", "three")
    crash = {"MEMORYBUS_CRASH_AT": "lane.after_apply:2"}
    first = spawn("-m", "memorybus_workers", "worker", "--jobs", "0", env=environ(settings) | crash)
    assert first.wait() == -9, first.output()
    with thread_worker(settings):
        wait_applied(redis_client, settings)
        told = "memorybus_redelivered_total"
        wait_until(lambda: collected(settings)[told] >= 1, "what came again is counted")
    assert collected(settings)[told] <= 3


def test_a_lease_that_another_takes_is_counted_as_lost(redis_client, make_settings, monkeypatch):
    """G5: an owner whose lease is another's by now gives the lane up, and counts that."""
    settings = make_settings(partitions=1, lease=3.0, call_timeout=2.0, **recorded("Blind"))
    keys = Keys(settings.namespace)
    with thread_worker(settings):
        wait_until(lambda: redis_client.exists(keys.lease(0, NAME)), "the lane has an owner")
        monkeypatch.setattr(Presence, "update", lambda *_: None)  # it would hand the lane over
        assert collected(settings)["memorybus_lost_leases_total"] == 0
        redis_client.set(keys.lease(0, NAME), "99:somebody-else", px=60_000)
        wait_until(
            lambda: collected(settings)["memorybus_lost_leases_total"] >= 1, "the loss is counted"
        )


def test_counts_survive_a_redis_that_is_away(redis_client, make_settings):
    """G9: what could not be reported is reported the next time, once."""
    keys, work = Keys(make_settings().namespace), WorkCounter()
    work.count(NAME, "parked")
    away = unreachable_client()
    for _ in range(2):
        try:
            work.report(away, keys)
        except redis.ConnectionError:
            work.count(NAME, "retried")
    work.report(redis_client, keys)
    work.report(redis_client, keys)
    found = read_work(redis_client, keys, [NAME])[NAME]
    assert (found.parked, found.retried) == (1, 2)


def test_each_event_counts_in_one_part_of_the_latency(redis_client, make_settings):
    """A bound belongs to the part below it; an event from a clock that is ahead has no age."""
    keys, work, now = Keys(make_settings().namespace), WorkCounter(), 1_700_000_000_000
    ages = (-7, 0, 10, 11, 1_000, 1_001, 90_000_000)
    events = [
        LoggedEvent(
            Position(0, f"{now - age}-{n}", n), OMITTED_ENVELOPES["filtered"], resent=n == 1
        )
        for n, age in enumerate(ages, start=1)
    ]
    work.settled(NAME, events, 0.001, now)
    work.settled(NAME, events[:1], 31.0, now, doubt=1)
    work.report(redis_client, keys)
    found = read_work(redis_client, keys, [NAME])[NAME]
    assert {bound: n for bound, n in found.latency.counts.items() if n} == {
        "0.01": 4,
        "0.05": 1,
        "1": 1,
        "5": 1,
        "+Inf": 1,
    }
    assert found.latency.sum == sum(age for age in ages if age > 0) / 1000
    assert {bound: n for bound, n in found.apply.counts.items() if n} == {"0.001": 1, "+Inf": 1}
    assert found.apply.sum == 31.001
    assert found.redelivered == 2
    assert work.totals() == {NAME: len(ages) + 1}
