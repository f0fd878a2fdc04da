"""A night: a backend refuses, somebody is woken, sees why, mends it and retries; nothing is lost.

Worker, Redis, Prometheus, the page, `top` and all commands are real; docs/operations.md shows this
story.
"""

import asyncio
import html
import http
import json
import re
from contextlib import closing
from pathlib import Path

import pytest
from helpers.faults.remote import Backend
from helpers.making import MakeServer, MakeSettings
from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from helpers.services.prometheus_server import Prometheus, program, prometheus
from helpers.stories.replaying import cli
from helpers.stories.scenario import environ
from helpers.stories.screens import screen
from helpers.web.pages import HASH, served
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.events import OperatorActed
from memorybus.health.monitor import read_status
from memorybus.history.history import History
from memorybus.query.query import Query
from memorybus.redis.connect import connect_redis

RULES = Path(__file__).parents[2] / "deploy/prometheus/alerts.yaml"
NAME = "mem"
SESSIONS = [f"chat-{number}" for number in range(8)]
REFUSED = 3
ALERT = "MemorybusDeadLetters"


@pytest.fixture(name="settings")
def _settings(make_redis: MakeServer, make_settings: MakeSettings, backend: Backend) -> Settings:
    """Return the settings of a bus with one provider, a service behind HTTP."""
    table = {"kind": "helpers.faults.remote:Remote", "port": backend.port, "timeout": 5}
    url = make_redis(appendonly="yes").url
    return make_settings(url=url, page_token=HASH, providers=(NAME,), provider={NAME: table})


def worker(spawn: Spawn, settings: Settings) -> tuple[Child, str]:
    """Start a worker that tells metrics; return it and where."""
    words = ("worker", "--jobs", "0", "--processes", "1", "--metrics", "127.0.0.1:0")
    child = spawn("-m", "memorybus_workers", *words, env=environ(settings))
    child.wait_output('"ready":true')
    (line,) = (one for one in child.output().splitlines() if one.startswith("{"))
    return child, json.loads(line)["metrics"]


def talk(settings: Settings, turns: range) -> None:
    """Let all sessions have these turns, one after the other, until the log has them."""
    with MemoryBus.connect(settings) as bus:
        for number in turns:
            for name in SESSIONS:
                session = bus.session(name, warm=False)
                session.turn_completed(f"turn {number}", "ok", ordinal=number)
        assert bus.flush(timeout=25)


def said(spawn: Spawn, settings: Settings, *words: str, code: int = 0) -> str:
    """Return what a command says."""
    child = cli(spawn, settings, *words)
    assert child.wait() == code, child.output()
    return child.output()


@pytest.mark.servers
@pytest.mark.timeout(200)
def test_a_backend_refuses_at_night(settings, spawn, backend, tmp_path):
    """G3, G6, G10: what a backend refuses wakes somebody, is explained, and is applied in order."""
    program("prometheus")
    running, where = worker(spawn, settings)
    with prometheus(where, RULES, tmp_path) as watched:
        talk(settings, range(5))
        wait_until(lambda: len(backend.effects) == 5 * len(SESSIONS), "the evening's turns are in")
        assert watched.firing() == set()
        backend.misbehave("402", REFUSED)
        talk(settings, range(5, 10))
        wait_until(lambda: ALERT in watched.firing(), "somebody is woken")
        assert_explained(spawn, settings, watched)
        retry_from_the_page(settings)
        wait_until(lambda: ALERT not in watched.firing(), "the alert ends")
        assert said(spawn, settings, "check").startswith("MEMORYBUS OK")
    assert_books_balance(settings, backend)
    assert running.terminate() == 0


def assert_explained(spawn: Spawn, settings: Settings, watched: Prometheus) -> None:
    """All views tell the same: which provider, how much waits, why, and what to do."""
    wait_until(lambda: read_status(settings).providers[0].backlog == 0, "all others went on")
    status = json.loads(said(spawn, settings, "status", "--json"))["providers"][0]
    waiting = status["dead_letters"]
    assert (status["parked_keys"], status["failing"]) == (REFUSED, "")
    assert REFUSED <= waiting <= 5 * REFUSED
    scraped = f'memorybus_dead_letters{{provider="{NAME}"}}'
    wait_until(lambda: watched.value(scraped) == waiting, "Prometheus has scraped the same")
    assert f"{NAME}: {REFUSED} events refused, {waiting - REFUSED} behind" in said(
        spawn, settings, "check", code=2
    )
    asyncio.run(seen_in_a_terminal(settings, waiting))
    (group,) = json.loads(said(spawn, settings, "dlq", "ls", "--group", "error", "--json"))
    assert (group["keys"], group["events"]) == (REFUSED, waiting)
    (first, *_) = json.loads(said(spawn, settings, "dlq", "ls", "--json"))
    assert "the backend answered 402" in said(spawn, settings, "dlq", "show", first["event"])


async def seen_in_a_terminal(settings: Settings, waiting: int) -> None:
    """See the same in `memorybus top`: what is wrong, and why."""
    async with screen(settings) as shown:
        await shown.shows(f"{NAME}: {REFUSED} events refused, {waiting - REFUSED} behind")
        await shown.press("3")
        await shown.shows("402")


def retry_from_the_page(settings: Settings) -> None:
    """Sign in, see the cause, look at what a retry would do, then do it and say why."""
    with served(settings) as operator:
        operator.sign_in("ann")
        assert f"{NAME}: {REFUSED} events refused" in operator.get("/").text
        page = operator.get("/dead").text
        assert "the backend answered …" in page
        (plan,) = set(re.findall(r'href="(/dead/retry[^"]*)"', page))
        form = operator.get(html.unescape(plan)).text
        assert f"of {REFUSED} keys" in form
        assert read_status(settings).providers[0].parked_keys == REFUSED
        hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form)
        fields = {name: html.unescape(value) for name, value in hidden}
        answer = operator.post("/dead/retry", fields | {"why": "the plan was raised"})
        assert answer.status == http.HTTPStatus.SEE_OTHER, answer.text
        done = operator.get(answer.headers["location"]).text
        assert "0 events of the same keys still wait" in done


def said_by_operators(settings: Settings) -> list[tuple[str, str]]:
    """Return who acted, and why, as the history has it."""
    with closing(connect_redis(settings)) as log:
        found = History.from_settings(log, settings).scan(Query())
        events = [one.envelope.event for one in found]
    return [(one.operator, one.reason) for one in events if isinstance(one, OperatorActed)]


def assert_books_balance(settings: Settings, backend: Backend) -> None:
    """Each turn has had its effect once, each session's in order, and nothing waits."""
    (status,) = read_status(settings).providers
    assert (status.backlog, status.dead_letters, status.parked_keys) == (0, 0, 0)
    assert status.applied == read_status(settings).log.published
    told = said_by_operators(settings)
    assert told == [("ann", "the plan was raised")]
    by_session: dict[str, list[int]] = {}
    for effect in backend.effects:
        by_session.setdefault(effect.key, []).append(effect.ordinal)
    assert list(by_session.values()) == [list(range(10))] * len(SESSIONS)
