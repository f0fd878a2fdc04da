"""The backup of docs/operations.md: its cron lines run as cron runs them, and restore a bus."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import load
from memorybus.health.monitor import read_status

PAGE = (Path(__file__).parents[3] / "docs/operations.md").read_text()
SECTION = PAGE.split("## Back up\n")[1].split("\n## ")[0]
CRONTAB, REHEARSAL = re.findall(r"```\n(.*?)```", SECTION, re.DOTALL)


@pytest.fixture
def places(short_dir: Path) -> Mapping[str, str]:
    """Return where the page's places are here, with a program in the first one."""
    names = {"/opt/memorybus/bin": "bin", "/srv/memorybus": "srv", "/backup": "backup"}
    for name in names.values():
        (short_dir / name).mkdir()
    program = short_dir / "bin/memorybus"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m memorybus "$@"\n')
    program.chmod(0o755)
    settings = 'data_dir = "data"\nseal_after = 0\nsegment_age = 0\n'
    (short_dir / "srv/memorybus.toml").write_text(settings)
    return {place: str(short_dir / name) for place, name in names.items()}


def here(text: str, places: Mapping[str, str]) -> str:
    """Return a text of the page with the places of this test."""
    for place, directory in places.items():
        text = text.replace(place, directory)
    return text


def run_crontab(places: Mapping[str, str], home: Path) -> None:
    """Run each line of the page's crontab as cron does: by sh, in HOME, with little around it."""
    variables, jobs = here(CRONTAB, places).strip().split("\n\n")
    env = dict(line.split("=", 1) for line in variables.splitlines())
    env |= {"HOME": str(home), "LOGNAME": "ann", "SHELL": "/bin/sh"}
    for job in jobs.splitlines():
        assert not re.search(r"(?<!\\)%", job), "cron ends a command at a bare %"
        command = ["/bin/sh", "-c", job.split(maxsplit=5)[5].replace("\\%", "%")]
        done = subprocess.run(
            command, env=env, cwd=home, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (job, done.stdout, done.stderr)


def started(spawn: Spawn, directory: Path, *words: str) -> Child:
    """Start `memorybus up` in a directory, and wait until it is up."""
    up = spawn("-m", "memorybus", "up", *words, cwd=directory, env={"HOME": str(directory)})
    up.wait_output("Ctrl-C stops it.", timeout=60)
    return up


def answered(spawn: Spawn, directory: Path, *words: str) -> str:
    """Run a command in a directory; return what it printed."""
    command = spawn("-m", "memorybus", *words, cwd=directory, env={"HOME": str(directory)})
    assert command.wait(60) == 0, command.output()
    return command.output()


def wait_all_applied(directory: Path, data_dir: Path) -> None:
    """Wait until every provider of a data directory has the published events."""
    settings = load(environ={"MEMORYBUS_DATA_DIR": str(data_dir)}, directory=directory)
    wait_until(
        lambda: (
            (status := read_status(settings)).log.published
            and not any(provider.backlog for provider in status.providers)
        ),
        "all is applied",
        60,
    )


@pytest.fixture
def backed_up(places: Mapping[str, str], spawn: Spawn, tmp_path: Path) -> Path:
    """Return the directory of a bus that had a memory, was backed up, and stopped."""
    directory = Path(places["/srv/memorybus"])
    up = started(spawn, directory)
    environ = {"MEMORYBUS_DATA_DIR": str(directory / "data")}
    bus = MemoryBus.connect(load(environ=environ, directory=directory))
    session = bus.session("s-1", agent="gardener", user="ann")
    session.memory_written("add", "Ann's ladder stands behind the shed.", store="user")
    assert bus.flush()
    bus.close()
    run_crontab(places, tmp_path)
    assert up.terminate() == 0
    return directory


def test_the_documented_backup_restores_a_bus(backed_up, places, spawn, tmp_path, short_dir):
    """G7: cron's export brings memories into an empty directory; its copy of Redis is a log."""
    rehearsal = short_dir / "r"
    commands = here(REHEARSAL, {**places, "/tmp/rehearsal": str(rehearsal)})
    commands = commands.replace("2026-11-28", datetime.now(UTC).date().isoformat())
    begin, restore, ask = map(shlex.split, re.findall(r"\$ memorybus (.*?)(?: &)?\n", commands))
    up = started(spawn, tmp_path, *begin[1:])
    assert "2 events, 2 new to this log; 2 published" in answered(spawn, tmp_path, *restore)
    wait_all_applied(tmp_path, rehearsal)
    assert "behind the shed" in answered(spawn, tmp_path, *ask)
    assert up.terminate() == 0

    log = backed_up / "data/redis/appendonlydir"
    shutil.rmtree(log)
    (copied,) = Path(places["/backup"]).glob("redis-*")
    shutil.copytree(copied, log)
    up = started(spawn, backed_up)
    assert "behind the shed" in answered(spawn, backed_up, "events", "ls")
    assert "behind the shed" in answered(
        spawn, backed_up, "recall", "ladder", "--agent", "gardener", "--user", "ann"
    )
    assert up.terminate() == 0
