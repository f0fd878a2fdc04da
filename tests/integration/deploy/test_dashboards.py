"""The dashboards for Grafana: each panel's question is answered by a real Prometheus."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from helpers.processes.waiting import wait_until
from helpers.services.prometheus_server import Prometheus, program, prometheus
from helpers.stories.scenario import NAME, recorded, say, thread_worker, wait_applied
from helpers.stories.statuses import metrics_told
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.health.metrics_server import Address, serve_metrics
from memorybus.health.monitor import read_status
from memorybus.recall.queue import RecallQueue
from memorybus.redis.connect import connect_jobs
from memorybus_console.operations.doctor import instances
from memorybus_console.operations.providers.lifecycle import pause_instance
from memorybus_console.operations.stores import Stores
from memorybus_workers.processes.service import Liveness

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/grafana"
BOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json")
}
PANELS = [panel for board in BOARDS.values() for panel in board["panels"]]
QUERIES = sorted({target["expr"] for panel in PANELS for target in panel["targets"]})
VARIABLES = {"$job": "memorybus", "$provider": NAME, "$__rate_interval": "20s"}
"""What Grafana puts in place of its variables, here: a scrape comes every second."""


def asked(query: str) -> str:
    """Return a query as Grafana sends it."""
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    return query


@contextmanager
def busy(settings: Settings, log: redis.Redis) -> Iterator[Address]:
    """Run a bus of which something is told by each panel: applied, refused, waiting, asked."""
    with (
        thread_worker(settings),
        serve_metrics(settings, Address("127.0.0.1", 0), Liveness(SYSTEM)) as address,
        MemoryBus.connect(settings) as bus,
    ):
        say(bus, "s", "one", "!permanent", "behind")
        assert bus.flush(timeout=25)
        wait_applied(log, settings)
        assert instances.send_and_await(settings, SYSTEM, "w1").ok
        bus.session("s").prefetch("what was one?")
        with Stores(settings) as stores:
            pause_instance(stores, NAME, "so that something waits", "test")
        wait_until(lambda: not read_status(settings).providers[0].lanes_owned, "it is paused")
        say(bus, "t", "it waits")
        assert bus.flush(timeout=25)
        with connect_jobs(settings) as jobs:
            RecallQueue(jobs, settings, NAME).put("s")
        yield address


def test_every_panel_shows_something_of_a_busy_bus(redis_client, make_settings, tmp_path):
    """G10: a real Prometheus that scraped a real bus has an answer to each panel's question."""
    program("prometheus")
    settings = make_settings(**recorded("Transactional"))
    rules = ROOT / "deploy/prometheus/alerts.yaml"
    with busy(settings, redis_client) as where, prometheus(str(where), rules, tmp_path) as running:
        assert unanswered(running) == []
        for board in BOARDS.values():
            for one in board["templating"]["list"][1:]:
                asked_for = re.fullmatch(r"label_values\((.+), (\w+)\)", one["query"]["query"])
                assert asked_for, one
                found = running.asked("query", query=asked(asked_for[1]))["result"]
                assert VARIABLES[f"${one['name']}"] in {s["metric"][asked_for[2]] for s in found}


def unanswered(running: Prometheus) -> list[str]:
    """Return the queries that get no answer however long we wait."""

    def empty() -> list[str]:
        return [q for q in QUERIES if not running.asked("query", query=asked(q))["result"]]

    try:
        wait_until(lambda: not empty(), "each query has an answer", timeout=40)
    except AssertionError:
        return empty()
    return []


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["title"]))
def test_each_panel_names_metrics_that_exist(panel):
    """G10: a panel on a metric that nobody tells would be empty for ever."""
    text = " ".join(target["expr"] for target in panel["targets"])
    assert set(re.findall(r"memorybus_\w+", text)) <= metrics_told()
    assert panel["description"]


@pytest.mark.parametrize("query", QUERIES)
def test_several_workers_are_one_bus(query):
    """G10: each query chooses a bus, and takes the greatest of what several workers tell alike."""
    assert query.count('job="$job"') == query.count("{")
    assert len(re.findall(r"\b(?:max|min)(?: by \([^)]+\))? ?\(", query)) == query.count("{")


def test_grafana_finds_dashboards_and_prometheus():
    """G10: what compose mounts is provisioned: the directory, the data source, each once."""
    (source,) = _provisioned("datasources")["datasources"]
    assert source["isDefault"]
    (folder,) = _provisioned("dashboards")["providers"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert source["url"].split("//")[1].split(":")[0] in compose
    assert f"./deploy/grafana:{folder['options']['path']}:ro" in compose["grafana"]["volumes"]
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS) == 3


def _provisioned(kind: str) -> dict[str, Any]:
    (file,) = (FOLDER / "provisioning" / kind).glob("*.yaml")
    found: dict[str, Any] = yaml.safe_load(file.read_text())
    return found
