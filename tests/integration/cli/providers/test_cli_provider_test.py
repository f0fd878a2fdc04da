"""``memorybus provider test`` with the providers of the package, a child process and Redis."""

import json

import pytest
from helpers.processes.commands import Ran, run_command
from helpers.services.fake_hindsight import fake_hindsight
from helpers.services.fake_mem0 import fake_mem0
from helpers.services.honcho_server import honcho_server
from helpers.services.mentisdb_server import mentisdb_server
from memorybus.config.settings import Settings, to_environ
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Home, Homes


def ran(settings: Settings, *words: str) -> Ran:
    """Run the command with these settings."""
    return run_command(to_environ(settings, {}), "provider", "test", *words)


@pytest.mark.parametrize("name", ["builtin", "holographic"])
def test_a_provider_of_the_package_passes_without_redis(name, short_dir):
    """Nothing but a data directory is needed; each step tells its time."""
    report = json.loads(ran(Settings(data_dir=short_dir), name, "--json").output)

    assert report["ok"] is True
    assert [step["name"] for step in report["steps"]][:3] == ["open", "write", "recall"]
    assert all(step["seconds"] >= 0 for step in report["steps"])


def test_what_cannot_be_opened_says_why_and_what_to_do(short_dir):
    """The error is the provider's own, below it stands the remedy; exit code 1."""
    home = short_dir / "providers" / "holographic"
    home.mkdir(parents=True)
    (home / "holographic.db").write_bytes(b"no database at all" * 500)

    done = ran(Settings(data_dir=short_dir), "holographic")

    assert done.returncode == 1
    assert "holographic.db" in done.output
    assert "→ " in done.output


def test_a_wrong_option_is_told_at_once(short_dir):
    """What cannot be made at all ends as every wrong setting does, with exit code 2."""
    wrong = Settings(data_dir=short_dir, provider={"builtin": {"memory_limti": 3}})

    done = ran(wrong, "builtin")

    assert done.returncode == 1
    assert "did you mean 'memory_limit'" in done.output


def test_an_unknown_name_is_told_with_those_there_are(short_dir):
    """Exit code 2, the nearest name, and no process is started."""
    done = ran(Settings(data_dir=short_dir), "builtinn")

    assert done.returncode == 2
    assert "did you mean 'builtin'" in done.output


def test_a_state_elsewhere_is_tested_there(settings):
    """A local provider is not opened beside its home: that would be another, empty one (G3)."""
    redis = connect_redis(settings)
    home = Home("f" * 32, "far", "/srv/far", "1")
    Homes(redis, Keys(settings.namespace)).move("builtin", home)
    redis.close()

    done = ran(settings, "builtin")

    assert done.returncode == 2
    assert "/srv/far on far" in done.output
    assert not settings.provider_home("builtin").exists()


SERVERS = {
    "hindsight": ("hindsight_client", fake_hindsight),
    "honcho": ("honcho", honcho_server),
    "mem0-server": ("urllib3", fake_mem0),
    "mentisdb": ("urllib3", mentisdb_server),
}


@pytest.mark.parametrize("kind", SERVERS)
def test_a_service_passes_too(kind, short_dir):
    """By its real client where there is one: opened, written to, recalled, erased or named."""
    library, serving = SERVERS[kind]
    pytest.importorskip(library, reason=f"needs the extra {kind}")
    with serving() as server:
        settings = Settings(
            data_dir=short_dir, providers=(kind,), provider={kind: {"base_url": server.url}}
        )
        done = ran(settings, kind, "--json")

    report = json.loads(done.output)
    assert report["ok"] is True, report
    assert [step["name"] for step in report["steps"]] == ["open", "write", "recall", "forget"]


@pytest.mark.parametrize("kind", SERVERS)
def test_a_service_that_is_away_is_told(kind, short_dir):
    """The step that needs it fails with its error, within the time that a call may take."""
    pytest.importorskip(SERVERS[kind][0], reason=f"needs the extra {kind}")
    away = {kind: {"base_url": "http://127.0.0.1:9"}}
    done = ran(Settings(data_dir=short_dir, providers=(kind,), provider=away), kind, "--json")

    report = json.loads(done.output)
    failed = [step for step in report["steps"] if not step["ok"]]
    assert failed, report
    assert done.returncode == 1
    assert f"memorybus provider setup {kind}" in failed[0]["fix"]
