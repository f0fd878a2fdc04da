"""Fixtures: real servers, settings with short timings, children that never outlive a test."""

import functools
import gc
import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fakeredis
import hypothesis
import pytest
import redis
import redis.utils
from helpers.making import SHORT_TIMINGS, MakeServer, MakeSettings
from helpers.processes.preloaded import fork_children
from helpers.processes.processes import Spawn
from helpers.processes.scratch import MEMORY, ROOM, keep_files_in_memory
from helpers.redis.leaks import leaked_keys
from helpers.redis.servers import RedisServer
from memorybus.config.settings import Settings
from memorybus.embedded.binary import find_server_binary
from memorybus.errors import NoServerBinary
from memorybus.processes.light_imports import collect_seldom
from memorybus.testing import FakeClock

if TYPE_CHECKING:
    from helpers.stories.world import World

pytest_plugins = [
    "helpers.processes.disks",
    "helpers.hermes.hermes_fixtures",
    "helpers.processes.islands",
    "helpers.archive.past",
    "helpers.stories.people",
    "helpers.faults.remote",
    "helpers.faults.rows",
    "helpers.archive.sealed_log",
    "helpers.processes.stalls",
    "helpers.providers.service_opening",
    "helpers.services.postgres_server",
    "helpers.services.hindsight_server",
]

_TERMINAL = ("TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
_TERMINAL += ("TTY_COMPATIBLE", "TTY_INTERACTIVE")
"""What decides how output looks: it is the same whatever started the tests."""

for _name in _TERMINAL:
    os.environ.pop(_name, None)
os.environ["TZ"] = "UTC"

# redis-py reads its version from disk for every connection: a twentieth of the tests' own time.
redis.utils.get_lib_version = functools.cache(redis.utils.get_lib_version)

_MEMORY_LACKS = pytest.StashKey[bool]()
"""Whether a run that was to keep its files in memory keeps them on the disk."""

MANY_EXAMPLES = 300
"""Seconds that a test of hypothesis may take; the slowest takes ten on a quiet machine."""

# That examples are made slowly says how busy the machine is, and nothing of what is tested.
hypothesis.settings.register_profile(
    "memorybus",
    max_examples=100 if "CI" in os.environ else 40,
    deadline=None,
    database=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "quick", hypothesis.settings.get_profile("memorybus"), max_examples=20
)
hypothesis.settings.load_profile("memorybus")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `make quick` and `make test`."""
    parser.addoption(
        "--preload",
        action="store_true",
        help="fork the tests' programs from a process that has loaded the modules",
    )
    parser.addoption(
        "--in-memory",
        action="store_true",
        help="keep the tests' files in memory if there is enough; they are gone after the run",
    )
    parser.addoption(
        "--write-golden",
        action="store_true",
        help="freeze again what commands print with --json (tests/golden/json)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Look for a server before processes are started that could not say what is missing.

    SIGINT is heard also where a shell script started this run in the background, with it ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Spawn.preload = bool(config.getoption("preload")) and hasattr(os, "pidfd_open")
    if Spawn.preload:
        fork_children(Spawn.run_preloaded)
    config.add_cleanup(Spawn.close_template)
    if config.getoption("in_memory") and not hasattr(config, "workerinput"):
        delete = keep_files_in_memory()
        config.stash[_MEMORY_LACKS] = delete is None
        config.add_cleanup(delete or (lambda: None))
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        demand_server_binary()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say why a run took longer than one with its files in memory; `-q` shows no header."""
    if config.stash.get(_MEMORY_LACKS, False):
        terminalreporter.write_line(
            f"files were on the disk: {MEMORY} has less than {ROOM >> 30} GiB free"
        )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the modules and the collected tests out of garbage collection: they are never freed.

    Each process of a run collects thousands of tests, and every collection would visit them again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        collect_seldom()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests of many examples compute for longer: a busy machine is several times slower.

    A test that is marked as slow says why, and those that are marked as long begin first.
    """
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.timeout(MANY_EXAMPLES))
        for mark in item.iter_markers("slow"):
            assert mark.kwargs.get("reason"), f"{item.nodeid} is slow without a reason"


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(settings: Any) -> Iterator[object]:
    """Let a time-out come again and again: what is raised in a callback, an event loop swallows."""
    done = yield
    if signal.getitimer(signal.ITIMER_REAL)[0]:
        signal.setitimer(signal.ITIMER_REAL, settings.timeout, settings.timeout)
    return done


def demand_server_binary() -> None:
    """End the whole run with the install command if there is no server: no test is skipped."""
    try:
        find_server_binary()
    except NoServerBinary as error:
        pytest.exit(f"the tests need a real Redis server: {error}", returncode=2)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One real server for all tests of this process; emptied after each test."""
    demand_server_binary()
    server = RedisServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(autouse=True)
def _no_leaked_keys(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test that used the server: no key stays for ever unknown to the table of keys (G10).

    Set up before everything else of the test, hence checked after its children are gone.
    """
    if "redis_server" not in request.fixturenames:
        yield
        return
    client = request.getfixturevalue("redis_server").client()
    yield
    leaked = leaked_keys(client)
    client.flushall()
    client.close()
    assert not leaked, f"keys without a time to live that no table allows: {leaked}"


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """URL of the shared server."""
    return redis_server.url


@pytest.fixture
def redis_client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    """Return a client of the shared server, answering bytes."""
    client = redis_server.client()
    yield client
    client.close()


@pytest.fixture
def fake_redis() -> Iterator[fakeredis.FakeRedis]:
    """Return a client of a fake server of its own: for the fast loop, not for leases or time."""
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7, 0)))
    yield client
    client.close()


@pytest.fixture
def make_redis() -> Iterator[MakeServer]:
    """Make started servers of this test's own: ``make_redis(appendonly="yes", maxmemory="2mb")``.

    They can be killed, frozen and started again; keys are checked on those that still answer.
    """
    servers: list[RedisServer] = []

    def make(*, binary: Path | None = None, **options: str | int) -> RedisServer:
        server = RedisServer(binary=binary, **options)
        servers.append(server)
        server.start()
        return server

    yield make
    leaked: list[str] = []
    for server in servers:
        if server.alive:
            server.thaw()
            leaked += leaked_keys(server.client())
        server.remove()
    assert not leaked, f"keys without a time to live that no table allows: {leaked}"


@pytest.fixture
def private_redis(make_redis: MakeServer) -> RedisServer:
    """Return a server of this test's own that keeps its data across a kill (AOF on)."""
    return make_redis(appendonly="yes")


@pytest.fixture
def namespace() -> str:
    """Return a prefix that no other test uses."""
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """Return a directory with a short path (a unix socket's is limited to about 100 bytes)."""
    directory = Path(tempfile.mkdtemp(prefix="mb-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def make_settings(request: pytest.FixtureRequest, short_dir: Path, namespace: str) -> MakeSettings:
    """Make settings on the shared server, with short timings; arguments override.

    The shared server is only started if the test names `redis_server`, `redis_url` or
    `redis_client`; others must give a `url`, or leave the embedded server's.
    """
    defaults: dict[str, Any] = {"namespace": namespace, "data_dir": short_dir, **SHORT_TIMINGS}
    if "redis_server" in request.fixturenames:
        defaults["url"] = request.getfixturevalue("redis_server").url

    def make(**overrides: Any) -> Settings:
        return Settings(**{**defaults, **overrides})

    return make


@pytest.fixture
def settings(redis_url: str, make_settings: MakeSettings) -> Settings:
    """Return settings on the shared server, with short timings."""
    return make_settings(url=redis_url)


@pytest.fixture
def spawn(tmp_path: Path, short_dir: Path) -> Iterator[Spawn]:
    """Start child processes; at the end of the test they are killed with all they started."""
    spawner = Spawn(tmp_path, uuid.uuid4().hex, short_dir)
    yield spawner
    spawner.end_all()
    for child in spawner.children:  # pytest shows it if the test failed
        print(child.argv, child.output()[-20_000:], sep="\n")


@pytest.fixture
def make_world(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> "Callable[..., World]":
    """Make a bus on the shared server: ``make_world(providers=("builtin",))``."""
    from helpers.stories.world import World  # loads the whole product, which few tests need

    return lambda **changed: World(make_settings(**changed), redis_client, spawn)


@pytest.fixture
def flag(tmp_path: Path) -> Path:
    """Return a file; while it exists, the events that name it fail, hang or are refused."""
    file = tmp_path / "flag"
    file.touch()
    return file


@pytest.fixture
def fake_clock() -> FakeClock:
    """Return a clock that only the test moves."""
    return FakeClock()
