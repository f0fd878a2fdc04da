"""The units for systemd: sound, narrow, and lived in by a real worker."""

import configparser
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.processes.waiting import wait_until
from helpers.services.systemd import analysed
from helpers.stories.scenario import environ, publish, recorded, wait_applied
from memorybus.config.settings import load
from memorybus_console.operations import service
from memorybus_workers.processes.supervised_worker import KILL_RESERVE_SECONDS

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/systemd"
SYSTEM = sorted(path.name for path in (FOLDER / "system").iterdir())
SERVICES = [name for name in SYSTEM if name.endswith(".service")]
DENY = "import ctypes; assert ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) == 0; "
"""What MemoryDenyWriteExecute= does to a process and its children, as far as the kernel can."""
EXPOSURE = 15
"""The most that `systemd-analyze security` may find, in tenths: below 2.0 it says OK."""


class Unit(configparser.RawConfigParser):
    """A unit as sections of options; of an option given twice, all values."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(strict=False, comment_prefixes=("#",), delimiters=("=",))
        self.optionxform = str
        self.read(FOLDER / kind / name)

    def seconds(self, option: str) -> float:
        """Return a time of its service."""
        return float(self["Service"][option])


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Return the system's units, all of which name a program that is here."""
    here = shutil.which("true")
    for path in FOLDER.glob("*/memorybus*"):
        text = path.read_text()
        for program in ("/opt/memorybus/bin/memorybus", "%h/.local/bin/memorybus"):
            text = text.replace(f"={program} ", f"={here} ")
        (tmp_path / path.name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", SYSTEM)
def test_systemd_understands_each_unit(units, name):
    """G10: a misspelt option would be passed over, and its protection with it."""
    assert analysed("verify", units / name) == (0, "")


def test_systemd_understands_a_persons_unit(units, monkeypatch, short_dir):
    """G10: the same of the unit that a person runs without being root."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_dir))
    assert analysed("--user", "verify", units / "memorybus.service") == (0, "")


def test_systemd_understands_the_unit_that_a_set_up_writes(monkeypatch, short_dir):
    """G10: names with spaces and signs of systemd's own reach the service unchanged."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_dir))
    place = short_dir / "a % b"
    place.mkdir()
    unit = short_dir / service.UNIT
    given = {"MEMORYBUS_URL": 'redis://:a"b$c%d\\e@h'}
    unit.write_text(service.unit_text([shutil.which("true") or "", "a b"], place, given))
    assert analysed("--user", "verify", unit) == (0, "")


@pytest.mark.parametrize("name", SERVICES)
def test_services_are_exposed_to_little(units, name):
    """G10: systemd's own judgement of what a service that was taken over could do."""
    code, said = analysed("security", "--offline=true", f"--threshold={EXPOSURE}", units / name)
    assert code == 0, said


@pytest.mark.parametrize(
    ("kind", "name"), [("system", "memorybus-worker.service"), ("user", "memorybus.service")]
)
def test_a_service_is_waited_for(kind, name):
    """G10: it gets longer to end than a worker takes, and is not started anew for a bad setting."""
    unit, settings = Unit(kind, name), load(environ={}, directory=ROOT / "tests")
    assert unit.seconds("TimeoutStopSec") >= settings.grace + KILL_RESERVE_SECONDS
    assert unit["Service"]["Type"] == "notify"
    assert unit["Service"]["KillMode"] == "mixed"
    assert unit["Service"]["RestartPreventExitStatus"] == "2"


def test_each_service_of_the_system_has_the_same_protections():
    """G10: what one of them may not do, none may."""
    protections = [
        (FOLDER / "system" / name).read_text().split("\nUMask=")[1].split("\n[Install]")[0].strip()
        for name in SERVICES
    ]
    assert len(set(protections)) == 1


def test_a_person_is_told_when_all_is_ready(make_settings, spawn, short_dir):
    """G10: `memorybus up` as a unit of type notify starts: its workers' word is heard."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(short_dir / "notify"))
        manager.setblocking(False)
        heard: list[str] = []

        def ready() -> bool:
            while True:
                try:
                    heard.append(manager.recv(200).decode())
                except BlockingIOError:
                    return "READY=1" in heard

        settings = make_settings(**recorded("Blind"))
        names = environ(settings) | {"NOTIFY_SOCKET": manager.getsockname()}
        child = spawn("-m", "memorybus", "up", "--jobs", "0", env=names)
        wait_until(ready, "systemd is told that it is ready", timeout=60)
        assert "WATCHDOG=1" not in heard
        assert child.terminate() == 0


def test_a_worker_works_where_no_memory_is_both_written_and_run(redis_client, make_settings, spawn):
    """G10: MemoryDenyWriteExecute= of the units takes nothing from a worker and its archive."""
    if subprocess.run(
        [sys.executable, "-c", DENY], stderr=subprocess.DEVNULL, check=False
    ).returncode:
        pytest.skip("this kernel cannot deny it (Linux 6.3 can)")
    settings = make_settings(**recorded("Transactional"))
    program = (
        f"{DENY}import runpy, sys, pyarrow, obstore, psycopg; "
        "sys.argv[1:] = ['worker', '--jobs', '1', '--processes', '1']; "
        "runpy.run_module('memorybus_workers', run_name='__main__')"
    )
    child = spawn("-c", program, env=environ(settings))
    child.wait_output('"ready":true')
    publish(settings, "s", "one", "two")
    wait_applied(redis_client, settings)
    assert child.terminate() == 0
