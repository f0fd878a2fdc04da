"""What systemd is told: ready once all workers are, alive while they are watched, ending."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import environ, recorded
from memorybus.testing import FakeClock
from memorybus_workers.processes.service import ServiceManager

WORKER = ("-m", "memorybus_workers", "worker", "--jobs", "0", "--processes", "1")


@pytest.fixture
def manager(short_dir: Path) -> Iterator[socket.socket]:
    """Listen as systemd does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(short_dir / "notify"))
        heard.setblocking(False)
        yield heard


def told(heard: socket.socket) -> list[str]:
    """Return what came since the last look."""
    found = []
    while True:
        try:
            found.append(heard.recv(200).decode())
        except BlockingIOError:
            return found


def test_systemd_is_told_of_a_workers_life(redis_url, make_settings, spawn, manager):
    """G10: a unit of type notify starts, is watched and ends with what the supervisor says."""
    settings = make_settings(url=redis_url, **recorded("Blind"))
    said: list[str] = []

    def heard(word: str) -> bool:
        said.extend(told(manager))
        return word in said

    names = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "200000"}
    child = spawn(*WORKER, env=environ(settings) | names)
    wait_until(lambda: heard("READY=1"), "it is ready")
    assert '"ready":true' in child.output()
    before = said.count("WATCHDOG=1")
    wait_until(lambda: heard("WATCHDOG=1") and said.count("WATCHDOG=1") > before + 1, "it lives")
    assert "STOPPING=1" not in said
    assert child.terminate() == 0
    assert heard("STOPPING=1")


def test_who_is_not_watched_says_nothing(manager):
    """G10: the watchdog hears half the time asked for, and nobody who did not ask."""
    clock = FakeClock()
    watched = ServiceManager(manager.getsockname(), 10.0, clock)
    for _ in range(3):
        watched.note_turn()
    clock.advance(4.9)
    watched.note_turn()
    assert told(manager) == ["WATCHDOG=1"]
    clock.advance(0.2)
    watched.note_turn()
    ServiceManager(manager.getsockname(), 0.0, clock).note_turn()
    assert told(manager) == ["WATCHDOG=1"]


def test_another_process_is_watched(manager, monkeypatch):
    """G10: a supervisor below the service's process leaves the watchdog to that one."""
    monkeypatch.setenv("NOTIFY_SOCKET", manager.getsockname())
    monkeypatch.setenv("WATCHDOG_USEC", "1000000")
    for pid, heard in ((os.getpid() + 1, []), (os.getpid(), ["WATCHDOG=1"])):
        monkeypatch.setenv("WATCHDOG_PID", str(pid))
        ServiceManager.of_environment(FakeClock()).note_turn()
        assert told(manager) == heard


def test_a_manager_that_is_gone_ends_nothing(short_dir):
    """G9: nobody at the socket's other end is no failure of the worker."""
    ServiceManager(str(short_dir / "gone"), 1.0, FakeClock()).note_ready()
    ServiceManager("", 1.0, FakeClock()).note_ready()
