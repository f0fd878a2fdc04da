"""The rules for Prometheus: sound, about metrics that exist, told on the page, and firing."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from helpers.processes.waiting import wait_until
from helpers.services.prometheus_server import program, prometheus
from helpers.stories.scenario import NAME, environ, publish, recorded, wait_applied
from helpers.stories.statuses import metrics_told
from memorybus.health.finding import Code

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/prometheus"
RULES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"][0][
    "rules"
]


def promtool(*words: str) -> str:
    """Run it; return what it said, and fail if it fails."""
    done = subprocess.run(
        [program("promtool"), *words], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_sound():
    """G10: what is shipped is accepted by the Prometheus that shall read it."""
    assert f"{len(RULES)} rules found" in promtool("check", "rules", "alerts.yaml")


def test_the_rules_fire_when_they_should_and_end_when_mended():
    """G10: time series made by hand fire each kind of rule, and no other."""
    assert "SUCCESS" in promtool("test", "rules", "alerts_test.yaml")


def test_each_rule_names_metrics_that_exist():
    """G10: a rule on a metric that nobody tells would be silent for ever."""
    named = {name for rule in RULES for name in re.findall(r"memorybus_\w+", rule["expr"])}
    assert named <= metrics_told()


def test_every_kind_of_finding_has_a_rule():
    """G10: what `check` calls wrong also reaches who is woken by Prometheus.

    That Redis is away is told by `memorybus_up`, since nothing else can be.
    """
    expressions = [rule["expr"] for rule in RULES]
    patterns = [p for text in expressions for p in re.findall(r'code=~?"([^"]+)"', text)]
    missed = [c for c in get_args(Code) if not any(re.fullmatch(p, c) for p in patterns)]
    assert missed == ["redis_away"]


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_each_alert_has_a_section_of_the_page(rule):
    """G10: who is woken finds what it means, what to look at, and what to do."""
    page = (ROOT / "docs/operations.md").read_text()
    home = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Homepage"]
    runbook = f"{home}/blob/main/docs/operations.md#{rule['alert'].lower()}"
    assert rule["annotations"]["runbook"] == runbook
    section = page.split(f"\n### {rule['alert']}\n")[1].split("\n#")[0]
    assert "- **Look at** " in section
    assert "- **Do** " in section
    assert rule["annotations"]["summary"] in " ".join(section.split())


def test_a_real_prometheus_scrapes_a_bus_and_an_alert_fires(
    redis_client, make_settings, spawn, tmp_path
):
    """G6, G10: a refused event is an alert within seconds; every rule can be evaluated."""
    program("prometheus")
    settings = make_settings(**recorded("Transactional"))
    worker = ("-m", "memorybus_workers", "worker", "--jobs", "0", "--processes", "1")
    child = spawn(*worker, "--metrics", "127.0.0.1:0", env=environ(settings))
    child.wait_output('"ready":true')
    (line,) = (one for one in child.output().splitlines() if one.startswith("{"))
    with prometheus(json.loads(line)["metrics"], FOLDER / "alerts.yaml", tmp_path) as running:
        wait_until(lambda: running.value("memorybus_up") == 1, "it has scraped")
        assert running.firing() == set()
        publish(settings, "s", "one", "!permanent")
        wait_applied(redis_client, settings)
        wait_until(lambda: "MemorybusDeadLetters" in running.firing(), "the alert fires")
        for rule in RULES:
            running.asked("query", query=rule["expr"])
        applied = f'memorybus_applied_total{{provider="{NAME}",outcome="applied"}}'
        assert running.value(applied) == 2
