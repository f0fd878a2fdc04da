"""A Redis that is away, or refuses to serve: one cause, named with its address and its remedy."""

import json
from collections.abc import Callable

import pytest
import redis
from helpers.processes.processes import Child
from helpers.processes.waiting import still, wait_until
from helpers.redis.clusters import free_ports
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import recorded, wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable
from memorybus.health.monitor import read_status
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_jobs, connect_redis, translate_redis_error
from memorybus.redis.keys import Keys
from memorybus.registry.roster import Roster
from memorybus_console.cli import main
from memorybus_workers.hosting.runner import LOG_RETRY_SECONDS

NOWHERE = "redis://:sesame@127.0.0.1:{}/0"

Refuse = Callable[[RedisServer], None]


def become_replica(server: RedisServer) -> None:
    """Make a server a replica of one that is nowhere."""
    server.client().execute_command("REPLICAOF", "127.0.0.1", free_ports(1)[0])


def fill(server: RedisServer) -> None:
    """Leave a server no memory."""
    server.client().config_set("maxmemory", "1")


def fail_to_save(server: RedisServer) -> None:
    """Let a server's snapshot fail, so that it refuses writes."""
    (server.directory / "dump.rdb").mkdir()
    client = server.client()
    client.config_set("save", "3600 1000000")
    client.bgsave()
    wait_until(
        lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err", "it cannot save"
    )


REFUSALS: list[tuple[Refuse, str, str]] = [
    (become_replica, "READONLY", "replicaof no one"),
    (fill, "OOM", "maxmemory"),
    (fail_to_save, "MISCONF", "disk"),
]
refusing = pytest.mark.parametrize(("refuse", "code", "remedy"), REFUSALS, ids=lambda x: str(x)[:9])


@refusing
def test_a_refusal_is_named_with_address_and_remedy_and_logged_once(
    private_redis, make_settings, caplog, refuse, code, remedy
):
    """G9, G10: an agent names the server, its state and what to do, and no key; it logs it once.

    Each new connection succeeds, and finds the same refusal.
    """
    settings = make_settings(url=private_redis.url)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.turn_completed("hello", "")
        assert bus.flush("logged", 25)
        refuse(private_redis)
        connected = connections(private_redis)
        session.turn_completed("again", "")
        problem = wait_until(lambda: bus.problem, "the event is refused")
        wait_until(lambda: connections(private_redis) > connected + 10, "it was refused often")
    assert f"{private_redis.url} " in problem
    assert code in problem
    assert remedy in problem
    assert settings.namespace not in problem
    assert "script" not in problem
    assert len([line for line in caplog.messages if code in line]) == 1


def connections(server: RedisServer) -> int:
    """Return how many connections a server has had."""
    return int(server.client().info("stats")["total_connections_received"])


@refusing
def test_a_worker_logs_a_lasting_refusal_a_few_times(
    private_redis, make_settings, spawn, refuse, code, remedy
):
    """G10: the lines of a worker are bounded while Redis refuses writes, whatever its lanes."""
    timings = {"lease": 1.0, "call_timeout": 0.5}
    settings = make_settings(url=private_redis.url, **timings, **recorded("Transactional"))
    child = worker(spawn, settings)
    refuse(private_redis)
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("hello", "")
    child.wait_output(code)
    wait_until(still(lambda: len(lines_with(child, code)), 3 * settings.lease), "no more is logged")
    assert 1 <= len(lines_with(child, code)) <= 10, child.output()


def lines_with(child: Child, words: str) -> list[str]:
    return [line for line in child.output().splitlines() if words in line]


@pytest.mark.parametrize(
    "words",
    [("status",), ("check",), ("events", "ls"), ("recall", "anything"), ("doctor",), ("dlq", "ls")],
    ids=" ".join,
)
def test_a_configured_redis_that_is_away_is_not_started_by_us(make_settings, capsys, words):
    """With a url the address is named without its password, and no embedded server is advised."""
    url = NOWHERE.format(free_ports(1)[0])
    settings = make_settings(url=url)
    place = ("--url", url, "--data-dir", str(settings.data_dir), "--namespace", settings.namespace)
    assert main([*words, *place]) in (1, 2)
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert url.replace(":sesame", "***") in text
    assert "correct `url`" in text or words == ("check",)
    assert "memorybus up" not in text
    assert f"{settings.namespace}:" not in text
    assert "sesame" not in text


def test_an_embedded_redis_that_is_away_is_started_by_one_command(short_dir, capsys):
    """Without a url the command that starts the embedded server is named."""
    assert main(["status", "--data-dir", str(short_dir), "--json"]) == 1
    assert "memorybus up" in json.loads(capsys.readouterr().out)["next"]


def test_a_jobs_server_that_is_away_is_named_as_such(make_settings):
    """Of two servers the one that is away is named, with its own setting."""
    log, jobs = (NOWHERE.format(port) for port in free_ports(2))
    client = connect_jobs(make_settings(url=log, jobs_url=jobs))
    with pytest.raises(redis.ConnectionError) as caught:
        client.ping()
    error = translate_redis_error(caught.value, "recall")
    assert str(error).startswith(jobs.replace(":sesame", "***"))
    assert "`jobs_url`" in str(error)


def test_a_connection_that_breaks_names_its_server(private_redis, make_settings):
    """A read of a key names the server that has gone, not the key."""
    settings = make_settings(url=private_redis.url)
    roster = Roster(connect_redis(settings), Keys(settings.namespace))
    assert roster.alive() == []
    private_redis.kill()
    with pytest.raises(LogUnavailable) as caught:
        roster.alive()
    assert str(caught.value).startswith(private_redis.url)
    assert settings.namespace not in str(caught.value)


def test_a_server_that_loads_its_data_is_waited_for():
    """LOADING is named, and so is that it passes."""
    error = redis.exceptions.BusyLoadingError("Redis is loading the dataset in memory")
    assert "(LOADING); wait" in str(translate_redis_error(error, "redis://there"))


def test_lanes_look_again_soon_after_redis_is_back(private_redis, make_settings, spawn):
    """G9: however long Redis was away, all lanes have an owner within moments of its return."""
    settings = make_settings(url=private_redis.url, **recorded("Transactional"))
    child = worker(spawn, settings)
    private_redis.kill()
    child.wait_output("Connection")
    wait_until(still(lambda: None, 8.0), "it has been away for longer than the longest wait")
    private_redis.start()
    wait_until(lambda: all_owned(settings), "all lanes have an owner", LOG_RETRY_SECONDS + 1)
    assert not read_status(settings).providers[0].failing
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("hello", "")
        assert bus.flush("logged", 25)
    wait_applied(private_redis.client(), settings)


def all_owned(settings: Settings) -> bool:
    try:
        return all(one.lanes_owned == one.lanes for one in read_status(settings).providers)
    except LogUnavailable:
        return False


def test_what_a_log_cannot_open_is_said_by_its_address(private_redis, make_settings):
    """A new log on a server that takes no writes is refused with the server's state."""
    settings = make_settings(url=private_redis.url)
    become_replica(private_redis)
    with pytest.raises(LogUnavailable, match="READONLY") as caught:
        EventLog(connect_redis(settings), settings).open()
    assert "meta" not in str(caught.value)
