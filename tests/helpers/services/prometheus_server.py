"""A real Prometheus and its promtool, from Debian's package, under ``.servers``; not installed."""

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from helpers.processes.waiting import wait_until
from helpers.redis.clusters import free_ports
from helpers.services.debian_programs import DebianPrograms

PROMETHEUS = DebianPrograms(
    "prometheus",
    ("prometheus",),
    MappingProxyType({"prometheus": "usr/bin/prometheus", "promtool": "usr/bin/promtool"}),
)
program = PROMETHEUS.program
_CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: memorybus
    static_configs: [{{targets: ["{target}"]}}]
"""


class Prometheus:
    """One that runs, at an address."""

    def __init__(self, where: str) -> None:
        self._where = where

    def asked(self, path: str, **query: str) -> Any:
        """Return the data of one answer of its API.

        Raises:
            AssertionError: it refuses the question.
        """
        url = f"http://{self._where}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def value(self, query: str) -> float | None:
        """Return the value of a query's first series; None if it has none."""
        found = self.asked("query", query=query)["result"]
        return float(found[0]["value"][1]) if found else None

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        alerts = self.asked("alerts")["alerts"]
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self._where}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def prometheus(target: str, rules: Path, place: Path) -> Iterator[Prometheus]:
    """Run one that scrapes a target every second and evaluates rules.

    Args:
        target: ``HOST:PORT``.
        rules: the file.
        place: a directory for its data.
    """
    (port,) = free_ports(1)
    where, config = f"127.0.0.1:{port}", place / "prometheus.yml"
    config.write_text(_CONFIG.format(rules=json.dumps(str(rules)), target=target))
    words = (f"--config.file={config}", f"--storage.tsdb.path={place / 'data'}")
    command = [program("prometheus"), *words, f"--web.listen-address={where}"]
    with (place / "prometheus.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        running = Prometheus(where)
        wait_until(running.is_ready, f"Prometheus answers on {where}", timeout=60)
        yield running
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    PROMETHEUS.fetch()
