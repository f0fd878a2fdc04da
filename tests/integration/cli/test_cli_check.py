"""``memorybus check`` on real buses: its line and its exit code."""

import json

import msgspec
import pytest
from helpers.processes.waiting import wait_until
from helpers.services.faulty_http import Fault
from helpers.services.webhook_server import PATH, webhook_server
from helpers.stories.scenario import recorded, say, thread_worker, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings, to_environ
from memorybus_console.cli import main


def use(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands find settings in the environment."""
    for name, value in to_environ(settings, {}).items():
        monkeypatch.setenv(name, value)


def test_the_line_and_the_code_follow_what_happens(
    redis_client, make_settings, monkeypatch, capsys
):
    """G10: without a worker it is critical; with one it says what is refused; one line each."""
    settings = make_settings(**recorded("Transactional"))
    use(settings, monkeypatch)
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", "one")
        assert bus.flush(timeout=25)
        assert main(["check"]) == 2
        assert "no worker is alive" in capsys.readouterr().out
        with thread_worker(settings):
            say(bus, "s", "!permanent")
            assert bus.flush(timeout=25)
            wait_applied(redis_client, settings)
            assert main(["check", "--json"]) == 2
    out = capsys.readouterr().out
    found = json.loads(out)
    assert (found["state"], found["code"]) == ("CRITICAL", 2)
    assert "dead_letters" in {one["code"] for one in found["findings"]}
    assert "dead_letters=1" in found["line"]


def test_a_status_may_end_with_the_code_of_a_check(
    redis_client, make_settings, monkeypatch, capsys
):
    """G10: `status --check` shows the status, and its exit code is that of `check`."""
    use(make_settings(**recorded("Transactional")), monkeypatch)
    assert main(["status"]) == 0
    shown = capsys.readouterr().out
    assert main(["status", "--check"]) == main(["check"]) == 2
    assert capsys.readouterr().out.splitlines()[0] == shown.splitlines()[0]
    assert main(["status", "--check", "--watch"]) == 2
    assert "leave out one of the two" in capsys.readouterr().err
    monkeypatch.setenv("MEMORYBUS_URL", "redis://127.0.0.1:1/0")
    assert main(["status", "--check"]) == 2
    assert capsys.readouterr().out.startswith("MEMORYBUS CRITICAL - ")


def test_a_status_prints_each_finding_of_its_exit_code(
    redis_client, make_settings, monkeypatch, capsys
):
    """G10: `status --check` prints a provider without an owner, as `check` does."""
    settings = make_settings(**recorded("Transactional"))
    more = msgspec.structs.replace(settings, providers=(*settings.providers, "builtin"))
    use(more, monkeypatch)
    with thread_worker(settings):
        assert main(["status", "--check"]) == 2
        assert "CRITICAL: builtin is configured, but no worker serves it" in capsys.readouterr().out


def test_redis_away_is_critical_and_wrong_settings_unknown(make_settings, monkeypatch, capsys):
    """G9: the states of monitoring plugins tell an incident from a mistake."""
    settings = make_settings(url="redis://127.0.0.1:1/0")
    use(settings, monkeypatch)
    assert main(["check"]) == 2
    assert capsys.readouterr().out.startswith("MEMORYBUS CRITICAL - ")
    monkeypatch.setenv("MEMORYBUS_PARTITONS", "4")
    assert main(["check"]) == 3
    assert capsys.readouterr().out.startswith("MEMORYBUS UNKNOWN - ")


@pytest.mark.parametrize("words", [("--frobnicate",), ("--url",), ("extra",)])
def test_a_wrong_option_is_unknown(words, capfd):
    """A plugin that was called wrongly is no incident: code 3, one line, the reason in it."""
    assert main(["check", *words]) == 3
    line = capfd.readouterr().out
    assert line.startswith("MEMORYBUS UNKNOWN - ")
    assert line.count("\n") == 1
    assert main(["check", *words, "--json"]) == 3
    assert json.loads(capfd.readouterr().out)["state"] == "UNKNOWN"


def test_people_are_notified_of_a_verdict_that_is_not_ok(
    redis_client, make_settings, monkeypatch, capsys
):
    """`check --notify` posts findings and remedies to an address that only a variable holds."""
    use(make_settings(**recorded("Transactional")), monkeypatch)
    with webhook_server() as hook:
        monkeypatch.setenv("THE_HOOK", hook.address)
        assert main(["check", "--notify", "THE_HOOK"]) == 2
        (message,) = hook.messages
        assert message["type"] == "failure"
        assert "no worker is alive" in message["message"]
        hook.faults.append(Fault(PATH, 403))
        assert main(["check", "--notify", "THE_HOOK"]) == 2
    shown = capsys.readouterr()
    assert "not delivered" in shown.err
    assert PATH not in shown.err + shown.out


def test_looks_without_end_notify_of_changes_alone(redis_client, make_settings, spawn):
    """`check --every` notifies once that something is wrong, and once that it is over."""
    settings = make_settings(**recorded("Transactional"))
    with webhook_server() as hook:
        words = ["check", "--every", "0.1", "--notify", "THE_HOOK"]
        environ = to_environ(settings, {"THE_HOOK": hook.address})
        spawn("-m", "memorybus_console.cli", *words, env=environ)
        wait_until(lambda: hook.messages, "people know that no worker is alive")
        with thread_worker(settings):
            wait_until(lambda: len(hook.messages) > 1, "people know that it is over")
            first, second = (message["message"] for message in hook.messages[:2])
    assert "no worker is alive" in first
    assert "no worker is alive" not in second
