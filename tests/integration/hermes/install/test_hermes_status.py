"""`memorybus hermes status`, and what Hermes's own status shows: the truth, and soon."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.fake_hermes import PLUGINS, python_of
from helpers.processes.commands import Ran, run_command
from helpers.processes.stalls import Witness
from helpers.processes.terminals import Terminal
from helpers.processes.waiting import wait_until
from helpers.services.honcho_server import honcho_server
from helpers.stories.scenario import recorded, thread_worker
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings, load, to_environ
from memorybus_hermes.home import HermesHome
from memorybus_hermes.install import install, status
from memorybus_hermes.install.install import PythonCheck
from memorybus_hermes.install.status import HermesStatus, PluginPlace
from memorybus_hermes.problems import Problems, problems_path

pytestmark = pytest.mark.timeout(60)

FOUND = PythonCheck("/usr/bin/python3", "0.1.0", "")


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> HermesHome:
    """Return a home in which all is as it should be."""
    home = HermesHome(tmp_path / "hermes", "coder")
    home.path.mkdir()
    install.write_plugin(home)
    home.config.write_text("memory:\n  provider: memorybus\n")
    return home


def wrong(found: HermesStatus) -> dict[str, str]:
    """Return the checks that failed, with their remedies."""
    return {check.name: check.fix for check in found.checks if not check.ok}


def test_all_is_well(home, make_settings, redis_url):
    """With plugin, provider, Redis and a worker in place nothing is wrong; the lag is told."""
    settings = make_settings(url=redis_url, **recorded("Keyed"))
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("q", "a", ordinal=0)
        assert bus.flush("logged")
        wait_until(lambda: _applied(settings), "the events are applied")
        found = status.read(home, settings, FOUND)
    assert found.ok, wrong(found)
    (provider,) = found.look.providers
    assert (provider.name, provider.backlog) == ("rec", 0)
    assert provider.last_applied_at is not None


def _applied(settings: Settings) -> bool:
    (one,) = status.read_bus(settings).providers
    return one.backlog == 0 and one.last_applied_at is not None


def test_what_is_wrong_is_named_with_its_remedy(home, make_settings, short_dir):
    """Every fault has a line that says what to do, and the exit code is 1."""
    (home.plugin_dir / "cli.py").write_text("old")
    home.config.write_text("memory:\n  provider: mem0\n")
    settings = make_settings(url=f"unix://{short_dir}/none.sock")
    check = PythonCheck("/usr/bin/python3", "", "/usr/bin/python3 -m pip install memorybus")
    remedies = wrong(status.read(home, settings, check))
    assert "memorybus hermes install" in remedies["plugin"]
    assert "pip install" in remedies["python"]
    assert "hermes memory setup memorybus" in remedies["provider"]
    assert "events are spooled" in remedies["log"]
    told = to_environ(settings) | {"HERMES_HOME": str(home.path)}
    done = run_command(told, "hermes", "status", "--json", alone=True)
    assert done.returncode == 1
    assert json.loads(done.stdout)["ok"] is False


@pytest.mark.parametrize(
    ("place", "ok", "words"),
    [
        (PluginPlace("{home}"), True, "in place, of this version"),
        (PluginPlace("/venv/memorybus"), True, "Hermes takes the entry point: /venv/memorybus"),
        (PluginPlace("/venv/memorybus", "it is disabled"), False, "it is disabled"),
        (PluginPlace(""), False, "missing"),
        (None, True, "in place, of this version"),
    ],
)
def test_the_plugin_is_where_hermes_takes_it_from(home, settings, redis_url, place, ok, words):
    """The entry point alone is enough; what Hermes refuses, or finds nowhere, is wrong."""
    if place and place.directory == "{home}":
        place = PluginPlace(str(home.plugin_dir))
    elif place:
        install.remove_plugin(home)
    found = status.read(home, settings, PythonCheck("/usr/bin/python3", "0.1.0", "", place))
    (plugin,) = [check for check in found.checks if check.name == "plugin"]
    assert (plugin.ok, bool(plugin.fix)) == (ok, not ok)
    assert words in plugin.found


def test_without_workers_that_is_told(home, settings, redis_url):
    """A log that nobody applies is no working memory."""
    assert "workers" in wrong(status.read(home, settings, FOUND))


def test_hermes_status_is_soon_there(home, make_settings, make_redis, short_dir, witness):
    """What `hermes memory status` shows comes within two seconds, Redis dead or hanging (G9)."""
    server = make_redis()
    settings = make_settings(url=server.url)
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False)
        assert bus.flush("logged")
    server.freeze()
    for away in (settings, make_settings(url=f"unix://{short_dir}/none.sock")):
        shown = _shown(home, away, witness)
        assert shown["log"].startswith("✗ away: ")
        assert "unsent event" in shown["spool"]


def _shown(home: HermesHome, settings: Settings, witness: Witness) -> dict[str, Any]:
    for _ in range(3):
        shown, took = witness.timed(lambda: status.status_config(home, settings))
        assert took < 2.0
    return shown


def test_the_last_error_of_a_hook_is_shown(home, settings, redis_url):
    """What a hook could not do is seen by who asks, fit for a terminal."""
    Problems(problems_path(settings), SYSTEM).note("sync_turn", ValueError("\x1b[31mbroken"))
    shown = status.status_config(home, settings)["last error"]
    assert "sync_turn: ValueError" in shown
    assert "\x1b" not in shown
    assert [problem.hook for problem in status.read(home, settings, FOUND).problems] == [
        "sync_turn"
    ]


def test_a_backup_has_what_the_home_has_not(home, make_settings, short_dir):
    """Spool, sessions and local providers are named without a start and without Redis."""
    settings = make_settings(url=f"unix://{short_dir}/none.sock")
    assert status.backup_paths(home, settings) == []
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False)
    settings.provider_home("builtin").mkdir(parents=True)
    paths = status.backup_paths(home, settings)
    assert str(settings.spool_dir) in paths
    assert str(settings.sessions_path) in paths
    assert str(settings.data_dir / "providers") in paths


def test_a_person_is_asked_what_to_take_over(tmp_path, short_dir):
    """Each is shown with what was read; what is refused is left, and what goes on is tried."""
    home = tmp_path / "hermes"
    shutil.copytree(PLUGINS / "recorder", home / "plugins" / "recorder")
    (home / "config.yaml").write_text("memory:\n  provider: recorder\n")
    (home / "mem0.json").write_text('{"host": "http://ann:hunter2hunter2@localhost:9"}')
    env = {"MEMORYBUS_DATA_DIR": str(short_dir / "data"), "HOME": str(tmp_path), "TERM": "dumb"}
    words = ("hermes", "setup", "--home", str(home), "--python", str(python_of(short_dir)))
    terminal = Terminal([sys.executable, "-m", "memorybus_console.cli", *words], env, short_dir)
    try:
        terminal.see("Hermes's memory provider is recorder")
        terminal.type("")
        for asked in ("settle", "calls_per_second", "daily_budget", "more options"):
            terminal.see(asked)
            terminal.type("")
        terminal.see("Write it?")
        terminal.type("y")
        terminal.see("http://***@localhost:9")
        terminal.type("no")
        terminal.see("Which providers shall remember?")
        terminal.type("builtin, recorder")
        terminal.see("published, applied and recalled in")
        assert terminal.end() == 0, terminal.seen
    finally:
        terminal.close()
    assert "hunter2" not in terminal.seen
    assert load(environ={}, directory=home).providers == ("builtin", "recorder")


def test_what_hermes_had_is_taken_over(tmp_path, short_dir):
    """A plugin goes on hosted, in the same home, once it was seen to work; a key is not shown."""
    home = tmp_path / "hermes"
    shutil.copytree(PLUGINS / "recorder", home / "plugins" / "recorder")
    (home / "config.yaml").write_text("memory:\n  provider: recorder\n")
    (home / ".env").write_text("MEM0_API_KEY=m0-hunter2-hunter2\n")
    env = to_environ(Settings(data_dir=short_dir), {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    del env["MEMORYBUS_PROVIDERS"], env["MEMORYBUS_PROVIDER"]

    def run(*words: str) -> Ran:
        named = ("--home", str(home), "--python", str(python_of(short_dir)))
        whole = ("hermes", *words, *named)
        return run_command(env, *whole, alone=True, directory=short_dir)

    told = run("install")
    assert "--take-over hermes:recorder" in told.stdout
    assert "--take-over hermes:mem0" in told.stdout
    assert "hunter2" not in told.stdout + told.stderr

    found = json.loads(run("install", "--json").stdout)["providers"]
    assert [provider["plugin"] for provider in found] == ["recorder", "mem0"]
    done = run("setup", "--take-over", "hermes:recorder", "--json")
    report = json.loads(done.stdout)
    (taken,) = report["taken_over"]
    assert all(step["ok"] for step in taken["steps"]), taken
    assert report["proof"]["ok"], report
    assert report["providers"] == ["builtin", "holographic", "recorder"]
    options = load(environ={}, directory=home).provider_options("recorder")
    assert options["hermes_home"] == str(home)
    assert "hunter2" not in done.stdout + (home / "memorybus.toml").read_text()
    refused = run("setup", "--take-over", "hermes:honcho")
    assert "there are: hermes:recorder, hermes:mem0" in refused.stderr


def test_honcho_goes_on_as_the_bus_s_own_provider(tmp_path, short_dir):
    """Address and key of `honcho.json` are taken over, the key into the secrets file alone."""
    pytest.importorskip("honcho", reason="needs the extra honcho")
    key = "hch-v3-correct-horse"
    home = tmp_path / "hermes"
    home.mkdir()
    env = to_environ(Settings(data_dir=short_dir), {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    del env["MEMORYBUS_PROVIDERS"], env["MEMORYBUS_PROVIDER"], env["MEMORYBUS_SECRETS_FILE"]
    words = ("hermes", "setup", "--home", str(home), "--take-over", "honcho", "--json")
    with honcho_server() as server:
        config = {"baseUrl": server.url, "apiKey": key, "enabled": True}
        (home / "honcho.json").write_text(json.dumps(config))
        done = run_command(env, *words, alone=True, directory=short_dir)

    (taken,) = json.loads(done.stdout)["taken_over"]
    assert all(step["ok"] for step in taken["steps"]), taken
    assert {message.workspace for message in server.messages} <= {"memorybus__doctor__doctor"}
    assert any(key in sent for sent in server.keys)
    options = load(environ={}, directory=home).provider_options("honcho")
    assert options == {"base_url": server.url, "api_key_env": "HONCHO_API_KEY"}
    assert key in (home / "memorybus.secrets.toml").read_text()
    assert key not in done.stdout + done.stderr + (home / "memorybus.toml").read_text()


def test_setup_without_a_terminal_asks_nothing_and_proves_memory(tmp_path, short_dir):
    """It keeps the home's other settings, serves for the proof alone, and starts no service."""
    (tmp_path / "memorybus.toml").write_text('# mine\nuser = "ann"\n')
    env = {"HOME": str(short_dir), "PATH": "/usr/bin:/bin", "HERMES_HOME": str(tmp_path)}
    done = run_command(env, "hermes", "setup", "--providers", "builtin", alone=True)
    assert done.returncode == 0, done.stderr
    assert "applied and recalled in" in done.stdout
    assert "hermes memorybus up" in done.stdout
    settings = load(environ={}, file=tmp_path / "memorybus.toml")
    assert (settings.providers, settings.user) == (("builtin",), "ann")
    assert not list(short_dir.rglob("memorybus.service"))


def test_the_plugin_comes_and_goes_by_command(tmp_path, short_dir):
    """`hermes install` and `uninstall` say what they did, also as JSON; wrong use exits with 2."""
    env = to_environ(Settings(data_dir=short_dir)) | {"HERMES_HOME": str(tmp_path)}

    def run(*words: str) -> Ran:
        return run_command(env, "hermes", *words, alone=True)

    installed = run("install", "--python", sys.executable, "--json")
    assert installed.returncode == 0, installed.stderr
    assert json.loads(installed.stdout)["changed"] == list(install.FILES)
    assert "memorybus hermes reconcile" in run("install", "--python", sys.executable).stdout
    assert run("reconcile").returncode == 1
    assert run("reconcile", "--since", "yesterday").returncode == 2
    assert json.loads(run("uninstall", "--json").stdout)["removed"] is True
