"""People are told of a real bus, by a real webhook and a real command, whatever fails."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.processes.waiting import wait_until
from helpers.redis.servers import RedisServer
from helpers.services.faulty_http import Fault
from helpers.services.webhook_server import PATH, WebhookServer, webhook_server
from helpers.stories.scenario import environ, recorded, say, thread_worker, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.config.notify import Notify
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable
from memorybus.notify.channels import channels_of
from memorybus.notify.notifier import Notifier
from memorybus.redis.keys import Keys
from memorybus.testing import FakeClock

GRACE = 60.0
WORKER = ("-m", "memorybus_workers", "worker", "--jobs", "0", "--processes", "1")


@pytest.fixture(name="hook")
def _hook() -> Iterator[WebhookServer]:
    with webhook_server() as server:
        yield server


class Watched:
    """A notifier and its clock."""

    def __init__(self, settings: Settings) -> None:
        """Look at nothing yet."""
        self.clock = FakeClock()
        self.notifier = Notifier(settings, channels_of(settings), self.clock)

    def poll(self, seconds: float = 5.0) -> None:
        """Look after some seconds, and let what is sent arrive."""
        self.clock.advance(seconds)
        self.notifier.poll()
        wait_until(self._has_sent, "what is sent has arrived")

    def _has_sent(self) -> bool:
        self.notifier.poll()
        return not (self.notifier._bus.busy or self.notifier._host.busy)


@pytest.fixture(name="alone")
def _alone(make_settings: MakeSettings, hook: WebhookServer, redis_url: str) -> Settings:
    """Return the settings of a bus without a worker, told by a webhook."""
    rules = Notify(url=hook.hook, severity="critical", after=GRACE, again=0.0)
    settings = make_settings(url=redis_url, notify=rules, **recorded("Transactional"))
    publish(settings)
    return settings


def publish(settings: Settings, *words: str) -> None:
    """Publish turns."""
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", *(words or ("one",)))
        assert bus.flush(timeout=25)


def lapse(client: redis.Redis, settings: Settings) -> None:
    """Let the lease of a dead reporter expire."""
    client.hset(Keys(settings.namespace).notices, "until", "0")


def test_an_alarm_is_told_once_when_it_begins_and_once_when_it_ends(
    alone: Settings, hook: WebhookServer
) -> None:
    """G10: after the grace, and with what to do."""
    watched = Watched(alone)
    watched.poll()
    assert hook.notices == []
    watched.poll(GRACE)
    watched.poll(GRACE)
    (told,) = hook.notices
    assert told["state"] == "CRITICAL"
    assert [(one["code"], one["remedy"]) for one in told["began"]] == [
        ("no_worker", "run: memorybus up")
    ]
    with thread_worker(alone):
        watched.poll()
        watched.poll(GRACE)
        watched.poll(GRACE)
    assert [len(notice["ended"]) for notice in hook.notices] == [0, 1]
    assert hook.notices[1]["ended"][0]["id"] == told["began"][0]["id"]
    assert hook.notices[1]["state"] == "OK"


def test_the_next_teller_does_not_tell_it_again(
    alone: Settings, hook: WebhookServer, redis_client: redis.Redis
) -> None:
    """G10: neither an orderly restart nor another host that takes over tells twice."""
    first = Watched(alone)
    first.poll()
    first.poll(GRACE)
    first.notifier.close()
    second = Watched(alone)
    second.clock.advance(3 * GRACE)
    second.poll()
    lapse(redis_client, alone)
    third = Watched(alone)
    third.clock.advance(6 * GRACE)
    third.poll()
    assert hook.told("began") == ["no_worker"]


def test_of_several_hosts_one_tells(
    alone: Settings, hook: WebhookServer, redis_client: redis.Redis
) -> None:
    """G5: who lost the lease tells nothing and overwrites nothing."""
    first, second = Watched(alone), Watched(alone)
    for _ in range(3):
        first.poll(GRACE)
        second.poll(GRACE)
    assert len(hook.notices) == 1
    lapse(redis_client, alone)
    second.poll(GRACE)
    first.poll(GRACE)
    assert len(hook.notices) == 1


def test_a_look_that_fails_forgets_nothing_that_was_taken(
    alone: Settings, hook: WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G10: Redis goes away just when the webhook has answered: it is not told twice."""
    watched = Watched(alone)
    watched.poll()
    watched.clock.advance(GRACE)
    watched.notifier.poll()
    wait_until(watched.notifier._bus.has_ended, "the webhook has answered")
    with monkeypatch.context() as away:
        away.setattr(watched.notifier, "_findings", lost)
        watched.notifier.poll()
    watched.poll(GRACE)
    watched.poll(GRACE)
    assert hook.told("began") == ["no_worker"]


def lost() -> NoReturn:
    """Fail as a look does without Redis."""
    raise LogUnavailable("gone")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(PATH, 500), "it answers 500"),
        (Fault(PATH, 302, {"Location": "/elsewhere"}), "redirects are not followed"),
        (Fault(PATH, "lose"), "a notice by webhook failed"),
    ],
)
def test_a_webhook_that_fails_is_tried_again(
    alone: Settings,
    hook: WebhookServer,
    caplog: pytest.LogCaptureFixture,
    fault: Fault,
    said: str,
) -> None:
    """G10: what it did not take is told later, to it alone; its address is in no log."""
    hook.faults.append(fault)
    watched = Watched(alone)
    watched.poll()
    watched.poll(GRACE)
    kept = len(hook.notices)
    assert said in caplog.text
    assert PATH not in caplog.text
    watched.poll()
    watched.poll()
    assert len(hook.notices) == kept + 1
    assert {path for _, path in hook.asked} == {PATH}
    watched.poll(GRACE)
    assert len(hook.notices) == kept + 1


def test_a_webhook_that_hangs_delays_no_command(
    alone: Settings, hook: WebhookServer, tmp_path: Path
) -> None:
    """G9: looks go on, the other channel is told, and what hangs is ended after its time."""
    out = tmp_path / "heard"
    code = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"
    rules: Any = {"command": (sys.executable, "-c", code, str(out)), "timeout": 600.0}
    settings = with_rules(alone, **rules)
    hook.faults.append(Fault(PATH, "late"))
    watched = Watched(settings)
    watched.poll()
    watched.clock.advance(GRACE)
    watched.notifier.poll()
    wait_until(
        lambda: looked(watched) and out.exists() and out.read_text().endswith("\n"),
        "the command is told",
    )
    wait_until(lambda: hook.notices, "the webhook has it, and does not answer")
    (heard,) = map(json.loads, out.read_text().splitlines())
    assert heard["began"] == hook.notices[0]["began"]
    assert watched.notifier._bus.busy
    watched.clock.advance(602.0)
    wait_until(lambda: looked(watched) and not watched.notifier._bus.busy, "it is given up")


def looked(watched: Watched) -> bool:
    """Look once more."""
    watched.notifier.poll()
    return True


def with_rules(settings: Settings, **changed: Any) -> Settings:
    """Return settings with another table `[notify]`."""
    rules = msgspec.structs.replace(settings.notify, **changed)
    return msgspec.structs.replace(settings, notify=rules)


def test_redis_away_is_told_by_the_host_itself(
    make_settings: MakeSettings, hook: WebhookServer, private_redis: RedisServer
) -> None:
    """G9: once per host however many processes look, and once when it is back."""
    rules = Notify(url=hook.hook, severity="critical", after=GRACE, again=0.0)
    settings = make_settings(url=private_redis.url, notify=rules, **recorded("Transactional"))
    with thread_worker(settings):
        pass
    first, second = Watched(settings), Watched(settings)
    private_redis.kill()
    for _ in range(3):
        first.poll(GRACE)
        second.poll(GRACE)
    assert hook.told("began") == ["redis_away"]
    first.notifier.close()
    restarted = Watched(settings)
    restarted.clock.advance(4 * GRACE)
    restarted.poll()
    assert hook.told("began") == ["redis_away"]
    private_redis.start()
    with thread_worker(settings):
        for _ in range(3):
            restarted.poll(GRACE)
    assert "redis_away" in hook.told("ended")
    assert hook.told("began").count("redis_away") == 1


def test_a_teller_that_is_killed_is_followed_by_one_that_repeats_the_name(
    make_settings: MakeSettings, spawn: Spawn, tmp_path: Path, redis_client: redis.Redis
) -> None:
    """G10: killed after the command took it and before that was noted: told again, as the same."""
    out = tmp_path / "heard"
    code = (
        "import os, signal, sys\n"
        "said = sys.stdin.read()\n"
        "with open(sys.argv[1], 'a') as out: out.write(said + '\\n')\n"
        "if 'dead_letters' in said and not os.path.exists(sys.argv[1] + '.killed'):\n"
        "    open(sys.argv[1] + '.killed', 'w').close()\n"
        "    os.kill(os.getppid(), signal.SIGKILL)\n"
    )
    rules = Notify(command=(sys.executable, "-c", code, str(out)), severity="critical", after=0.0)
    settings = make_settings(notify=rules, **recorded("Transactional"))

    def heard(what: str) -> list[str]:
        lines = out.read_text().splitlines() if out.exists() else []
        found = [one for line in lines for one in json.loads(line)["began"]]
        return [one["id"] for one in found if one["code"] == what]

    first = spawn(*WORKER, env=environ(settings))
    first.wait_output('"ready":true')
    publish(settings, "!permanent")
    wait_applied(redis_client, settings)
    first.wait()
    before = heard("dead_letters")
    lapse(redis_client, settings)
    second = spawn(*WORKER, env=environ(settings))
    wait_until(lambda: len(heard("dead_letters")) > len(before), "it is told again")
    assert len(set(heard("dead_letters"))) == 1
    assert second.terminate() == 0


def test_a_variable_that_is_not_set_is_told_at_the_start(
    make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G10: a worker does not start if nobody could be told, and says which variable is missing."""
    settings = make_settings(notify=Notify(url_env="NO_SUCH_HOOK"), **recorded("Transactional"))
    child = spawn(*WORKER, env=environ(settings))
    assert child.wait() == 2
    assert "'NO_SUCH_HOOK' is not set" in child.output()
