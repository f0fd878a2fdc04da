"""Metrics: names as Prometheus asks, the figures of a status, and one look a second."""

from collections.abc import Callable
from wsgiref.util import setup_testing_defaults

import pytest
from helpers.stories.statuses import provider, status
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LogUnavailable
from memorybus.health.finding import Finding
from memorybus.health.metrics import BusCollector, status_metrics
from memorybus.health.metrics_server import parse_address, with_probes
from memorybus.health.status import Status, StatusWithLanes
from memorybus.registry.work import Histogram, WorkDone
from memorybus.testing import FakeClock
from memorybus_workers.processes.service import STUCK_SECONDS, Liveness
from prometheus_client import CollectorRegistry, make_wsgi_app

NOW = 1_700_000_000_000


def samples(one: Status) -> dict[str, float]:
    """Return the samples of a status by name and label values."""
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in status_metrics(one, "1.2", (), NOW)
        for sample in family.samples
    }


def test_a_status_is_told_under_prometheuss_names():
    """G10: what only grows ends with _total; times are seconds; what is unknown has no sample."""
    found = samples(status(provider(name="p", applied=5, backlog=3, discarded=1)))
    assert found["memorybus_applied_total p applied"] == 5
    assert found["memorybus_applied_total p discarded"] == 1
    assert found["memorybus_backlog_events p"] == 3
    assert found["memorybus_build_info 1.2"] == 1
    assert found["memorybus_up"] == 1
    assert "memorybus_oldest_unapplied_timestamp_seconds p" not in found
    assert "memorybus_redis_limit_bytes" not in found


def test_a_time_is_no_age():
    """G10: Prometheus subtracts itself: the metric stays the same while the clock goes on."""
    one = status(provider(name="p", oldest_unapplied_at="2023-11-14T22:13:20.500Z"))
    assert samples(one)["memorybus_oldest_unapplied_timestamp_seconds p"] == 1_700_000_000.5


def test_a_histogram_is_cumulative():
    """G10: each bucket has all that was not larger, and the last one has all."""
    work = WorkDone(apply=Histogram({"0.1": 2, "1": 1, "+Inf": 4}, 9.5))
    found = samples(status(provider(name="p", work=work)))
    name = "memorybus_apply_duration_seconds"
    assert [found[f"{name}_bucket p {le}"] for le in ("0.1", "1", "+Inf")] == [2, 3, 7]
    assert (found[f"{name}_count p"], found[f"{name}_sum p"]) == (7, 9.5)


def test_findings_are_counted_by_code_and_those_that_are_not_are_zero():
    """G10: an alert on a kind of finding ends when it is mended: its series does not vanish."""
    alarms = [Finding("foreign_entries", "warning", name, "x", "y") for name in ("p01", "p02")]
    found = samples(status(provider(), alarms=alarms))
    assert found["memorybus_findings foreign_entries warning"] == 2
    assert found["memorybus_findings no_worker critical"] == 1
    assert found["memorybus_findings data_loss critical"] == 0


def test_a_look_serves_a_second_of_scrapes(make_settings):
    """G10: however many scrape, Redis is asked once a second."""
    clock, looks = FakeClock(), []

    def look(_: Settings) -> StatusWithLanes:
        looks.append(1)
        return StatusWithLanes(status(provider()), {})

    collector = BusCollector(make_settings(), clock, look)
    for _ in range(5):
        list(collector.collect())
    assert len(looks) == 1
    clock.advance(1.01)
    list(collector.collect())
    assert len(looks) == 2


def test_without_redis_the_spool_is_told(make_settings):
    """G9: a scrape succeeds while Redis is away, and says that it is."""

    def look(_: Settings) -> StatusWithLanes:
        raise LogUnavailable("away")

    families = BusCollector(make_settings(), FakeClock(), look).collect()
    found = {sample.name: sample.value for family in families for sample in family.samples}
    assert found == {"memorybus_up": 0, "memorybus_build_info": 1} | {
        "memorybus_spool_events": 0,
        "memorybus_spool_bytes": 0,
    }


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("9464", "127.0.0.1:9464"),
        (":9464", "127.0.0.1:9464"),
        ("0.0.0.0:80", "0.0.0.0:80"),
        ("[::1]:9464", "[::1]:9464"),
        ("localhost:0", "localhost:0"),
    ],
)
def test_an_address_without_a_host_is_loopback(text, read):
    """G10: figures are told to this machine alone unless an address says otherwise."""
    assert str(parse_address(text)) == read


@pytest.mark.parametrize("text", ["", "host", "host:", "1:2:3", "h:70000", "h:80/x", "u@h:80"])
def test_what_is_no_address_is_refused(text):
    """G10: a wrong address is a wrong setting, said with an example."""
    with pytest.raises(ConfigError, match="HOST:PORT"):
        parse_address(text)


@pytest.fixture
def liveness(fake_clock: FakeClock) -> Liveness:
    """Return the liveness of a process that has just begun."""
    return Liveness(fake_clock)


def asked(liveness: Liveness, path: str) -> tuple[str, str]:
    """Ask as a platform does; return the status and the text."""
    environ: dict[str, object] = {"PATH_INFO": path}
    setup_testing_defaults(environ)
    statuses: list[str] = []
    written: list[bytes] = []
    app = with_probes(make_wsgi_app(CollectorRegistry()), liveness)

    def start(status: str, *_: object) -> Callable[[bytes], object]:
        statuses.append(status)
        return written.append

    body = b"".join(app(environ, start))
    return statuses[0], body.decode()


def test_it_is_ready_from_its_word_to_its_end(liveness):
    """G10: who asks is told no while workers start, yes while they work, no while they end."""
    assert asked(liveness, "/readyz") == ("503 Service Unavailable", "no\n")
    liveness.note_ready()
    assert asked(liveness, "/readyz") == ("200 OK", "yes\n")
    liveness.note_end()
    assert asked(liveness, "/readyz")[0] == "503 Service Unavailable"
    assert asked(liveness, "/livez")[0] == "200 OK"


def test_a_loop_that_stands_still_is_not_alive(liveness, fake_clock):
    """G10: a supervisor that watches nothing any more is told to be started again."""
    fake_clock.advance(STUCK_SECONDS)
    assert asked(liveness, "/livez") == ("200 OK", "yes\n")
    fake_clock.advance(0.1)
    assert asked(liveness, "/livez") == ("503 Service Unavailable", "no\n")
    liveness.note_turn()
    assert asked(liveness, "/livez")[0] == "200 OK"


def test_metrics_have_one_path(liveness):
    """G10: a path that nobody serves costs no look at Redis and says which there are."""
    assert asked(liveness, "/metrics")[0] == "200 OK"
    assert asked(liveness, "/") == ("404 Not Found", "/metrics, /livez or /readyz\n")
