"""What memorybus writes is its user's alone, whatever the umask: 0700 and 0600."""

import signal
from pathlib import Path
from typing import Any

import pytest
from helpers.fake_hermes import PLUGINS, python_of
from helpers.hosted.hosted import ended
from helpers.processes.processes import Child, Spawn
from helpers.processes.unmasked import opened_to_others
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import TESTS, thread_worker
from memorybus import private
from memorybus.config.settings import Settings, to_environ
from memorybus.health.monitor import read_status
from memorybus_console.operations.doctor.doctor import check_privacy

pytestmark = pytest.mark.timeout(150)

UMASKS = (0, 0o22)


def ran(spawn: Spawn, settings: Settings, umask: int, *words: str) -> Child:
    """Start a process of `helpers.processes.unmasked`."""
    env = to_environ(settings, {"TMPDIR": str(settings.data_dir.parent)})
    return spawn(
        "-m", "helpers.processes.unmasked", str(umask), *words, env=env | {"PYTHONPATH": str(TESTS)}
    )


def done(spawn: Spawn, settings: Settings, umask: int, *words: str) -> None:
    """Run one to its end."""
    child = ran(spawn, settings, umask, *words)
    assert child.wait(90) == 0, child.output()


def hosting(python: Path) -> dict[str, Any]:
    """Return the settings of the two own providers, and of a hosted plugin of Hermes."""
    table = {"kind": f"hermes:{PLUGINS / 'recorder'}", "hermes_python": str(python), "idle": 60.0}
    return {"providers": ("builtin", "holographic", "one"), "provider": {"one": table}}


@pytest.mark.parametrize("umask", UMASKS)
def test_everything_of_one_host_is_private(umask, spawn, short_dir):
    """Server, worker, agent, hosted plugin, archive: nobody else reads what they write."""
    settings = Settings(
        data_dir=short_dir / "new" / "data",
        partitions=2,
        seal_after=0,
        segment_age=0,
        call_timeout=20.0,
        lease=30.0,
        **hosting(python_of(short_dir)),
    )
    plugin = settings.provider_home("one")
    with ended([plugin]):
        up = ran(spawn, settings, umask, "cli", "up", "--json")
        up.wait_output('"ready"', timeout=60)
        done(spawn, settings, umask, "agent")
        wait_until(lambda: list(settings.data_dir.rglob("calls.jsonl")), "the plugin has all", 60)
        wait_until(lambda: not any(p.backlog for p in read_status(settings).providers), "all do")
        wait_until(settings.tools_path.exists, "the tools are noted", 30)
        done(spawn, settings, umask, "cli", "archive", "run", "--json")
        names = {path.name for path in settings.data_dir.rglob("*")}
        assert {"holographic.db-wal", "state.db", "MEMORY.md", "USER.md", "redis.sock"} <= names
        assert {"hermes-host.sock", "hermes-host.lock", "place", "up.lock"} <= names
        assert opened_to_others(short_dir / "new") == []
        assert check_privacy(settings).ok
        up.send(signal.SIGINT)
        up.wait(60)
    assert opened_to_others(short_dir / "new") == []


@pytest.mark.parametrize("umask", UMASKS)
def test_it_does_not_depend_on_the_umask_of_a_worker(
    umask, spawn, redis_server, make_settings, short_dir
):
    """Stores, spools and the archive are made private in a process that keeps its umask."""
    settings = make_settings(
        data_dir=short_dir / "new",
        archive=str(short_dir / "shared" / "archive"),
        partitions=2,
        seal_after=0,
        segment_age=0,
        providers=("builtin", "holographic"),
    )
    done(spawn, settings, umask, "all")
    assert list((short_dir / "shared").rglob("*.parquet"))
    assert opened_to_others(short_dir / "new", short_dir / "shared") == []


def test_what_was_there_keeps_its_mode_and_is_told(redis_server, make_settings, short_dir):
    """A directory that somebody made is left as it is, and doctor names it with the command."""
    data, archive = short_dir / "data", short_dir / "archive"
    for place in (data, archive):
        place.mkdir()
        place.chmod(0o755)
    settings = make_settings(data_dir=data, archive=str(archive), providers=("builtin",))
    with thread_worker(settings):
        wait_until((settings.provider_home("builtin") / "state.db").exists, "it is open")
    (data / "providers" / "builtin" / "state.db").chmod(0o644)  # of an earlier release
    (data / "link").symlink_to("/etc/passwd")
    assert sorted(opened_to_others(data)) == [
        f"0644 {data}/providers/builtin/state.db",
        f"0755 {data}",
    ]
    told = check_privacy(settings)
    assert not told.ok
    assert f"{data} (0755)" in told.found
    assert f"{data}/providers/builtin/state.db (0644)" in told.found
    assert "link" not in told.found
    assert told.fix == f"run: chmod -R go-rwx {data} {archive}"


def test_a_file_of_the_user_keeps_its_mode(short_dir):
    """What is there is neither opened nor changed; what is missing is made, however deep."""
    path = short_dir / "a" / "b" / "file"
    private.directory(path.parent)
    private.file(path)
    path.write_text("mine")
    path.chmod(0o640)
    path.parent.chmod(0o750)
    private.directory(path.parent)
    private.file(path)
    private.write(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.parent.stat().st_mode & 0o777 == 0o750
    with pytest.raises(FileExistsError):
        private.directory(path)
