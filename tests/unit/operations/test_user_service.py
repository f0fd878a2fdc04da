"""The person's service: its unit, and what is asked of systemd."""

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from memorybus_console.operations import service, up
from memorybus_console.operations.local_server import is_listening


@pytest.fixture(autouse=True)
def _config_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_the_unit_runs_this_program_in_its_place():
    """Words are quoted as systemd reads them back; the protections stay."""
    text = service.unit_text(["/a b/python", "$x"], Path("/h/100%"), {"MEMORYBUS_URL": 'a"%'})
    lines = text.splitlines()
    assert 'ExecStart="/a b/python" "$$x" "up" --log json' in lines
    assert "WorkingDirectory=/h/100%%" in lines
    assert 'Environment="MEMORYBUS_URL=a\\"%%"' in lines
    assert "NoNewPrivileges=yes" in lines


def test_a_service_is_written_privately_and_started():
    """Its variables may hold a password; systemd reads it, starts it, and keeps it."""
    asked: list[list[str]] = []

    def run(command: list[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        asked.append(command[2:])
        return subprocess.CompletedProcess(command, 0, "", "")

    path = service.start(service.unit_text(["m"], Path("/h"), {}), run)
    assert path.stat().st_mode & 0o077 == 0
    assert [words[0] for words in asked] == ["daemon-reload", "enable", "restart"]
    assert service.is_ours()


def test_a_systemd_that_refuses_is_an_error():
    """The error has its reason."""

    def refuse(*_: Any, **__: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.CompletedProcess([], 1, "", "no medium found")

    with pytest.raises(service.ServiceFailed, match="no medium found"):
        service.start("", refuse)


def test_a_unit_of_somebody_else_is_left_alone(monkeypatch):
    """A unit of that name that a set-up did not write is never replaced."""
    monkeypatch.setattr(service.shutil, "which", lambda _: "/usr/bin/systemctl")

    def works(*_: Any, **__: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.CompletedProcess([], 0, "", "")

    assert service.is_possible(works)
    service.unit_path().parent.mkdir(parents=True)
    service.unit_path().write_text("[Unit]")
    assert not service.is_possible(works)
    assert not service.is_ours()


def test_a_socket_without_a_listener_is_known(tmp_path):
    """A killed server leaves its socket file: nobody listens there."""
    path = tmp_path / "s"
    assert not is_listening(path)

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert is_listening(path)

    assert path.exists()
    assert not is_listening(path)


def test_there_is_one_up_per_data_directory(tmp_path):
    """A second one is refused with a clear message; after the first has gone it may start."""
    second = up.up_lock(tmp_path)
    with up.up_lock(tmp_path), pytest.raises(up.AlreadyUp, match="stop it first"):
        second.__enter__()

    with up.up_lock(tmp_path):
        assert (tmp_path / "up.lock").exists()
