"""Whether a worker lives, as platforms ask it: without Redis, without waiting."""

from collections.abc import Callable
from wsgiref.util import setup_testing_defaults

import pytest
from memorybus.health.metrics_server import with_probes
from memorybus.testing import FakeClock
from memorybus_workers.processes.service import STUCK_SECONDS, Liveness
from prometheus_client import CollectorRegistry, make_wsgi_app


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
