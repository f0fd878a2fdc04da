"""The peers: how each is given events and started, and how many events it gets."""

from pathlib import Path

import msgspec

HERE = Path(__file__).parent
HOME = HERE.parent / "out" / "peers"
"""Where `make bench-peers` puts their environments."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """One tool in one form.

    Attributes:
        name: as it is shown; the tool, and its form if it has several.
        script: publishes events; also the worker, unless `worker` is another command.
        worker: the worker's command line, its program looked for in the environment.
        environment: the virtual environment's name.
        form: told to the script.
        concurrency: handlers at once.
        batch: whether handlers get many events in one call.
        noop: events it works off without work; 0 for none.
        slow: events of 20 ms each; 0 for none.
        timed_recovery: whether its recovery after a kill is timed.
        quick: whether it runs in the short form, too: those that come out fastest.
    """

    name: str
    script: str
    worker: tuple[str, ...] = ()
    environment: str = "venv"
    form: str = ""
    concurrency: int = 1
    batch: bool = False
    noop: int = 0
    slow: int = 0
    timed_recovery: bool = False
    quick: bool = False

    @property
    def programs(self) -> Path:
        """The directory of its environment's programs."""
        return HOME / self.environment / "bin"

    @property
    def work(self) -> list[str]:
        """The worker's whole command line."""
        program, *words = self.worker or ("python", self.script)
        return [str(self.programs / program), *words]

    def fill(self, count: int) -> list[str]:
        """Return the command line that publishes so many events."""
        return [str(self.programs / "python"), self.script, "--fill", str(count)]


_TASKIQ = ("taskiq", "worker", "peer_taskiq:broker", "--workers", "1", "--log-level", "WARNING")
_HUEY = ("python", "-m", "huey.bin.huey_consumer", "peer_huey.queue", "-q")
_CELERY = ("celery", "-A", "peer_celery", "worker", "-P", "threads", "-l", "WARNING")
_DRAMATIQ = ("dramatiq", "peer_dramatiq", "--processes", "1", "--threads", "8")

PEERS: tuple[Peer, ...] = (
    Peer(
        name="faststream batch",
        script="peer_faststream.py",
        form="batch",
        batch=True,
        noop=30_000,
        quick=True,
    ),
    Peer(
        name="faststream", script="peer_faststream.py", noop=8_000, timed_recovery=True, quick=True
    ),
    Peer(
        name="faststream 100 at once",
        script="peer_faststream.py",
        form="many",
        concurrency=100,
        slow=4_000,
    ),
    Peer(
        name="taskiq stream",
        script="peer_taskiq.py",
        worker=_TASKIQ,
        noop=6_000,
        slow=4_000,
        timed_recovery=True,
    ),
    Peer(
        name="taskiq list",
        script="peer_taskiq.py",
        worker=_TASKIQ,
        form="list",
        noop=6_000,
        slow=6_000,
        timed_recovery=True,
        quick=True,
    ),
    Peer(
        name="huey",
        script="peer_huey.py",
        worker=(*_HUEY, "-w", "1"),
        noop=6_000,
        timed_recovery=True,
        quick=True,
    ),
    Peer(name="huey 8", script="peer_huey.py", worker=(*_HUEY, "-w", "8"), slow=1_000),
    Peer(
        name="docket",
        script="peer_docket.py",
        concurrency=50,
        noop=3_000,
        slow=3_000,
        timed_recovery=True,
    ),
    Peer(
        name="arq",
        script="peer_arq.py",
        environment="venv-arq",
        concurrency=100,
        noop=3_000,
        slow=3_000,
        timed_recovery=True,
    ),
    Peer(
        name="dramatiq",
        script="peer_dramatiq.py",
        worker=_DRAMATIQ,
        noop=4_000,
        slow=1_000,
        timed_recovery=True,
    ),
    Peer(
        name="streaq",
        script="peer_streaq.py",
        concurrency=16,
        noop=3_000,
        slow=1_500,
        timed_recovery=True,
    ),
    Peer(
        name="celery 10",
        script="peer_celery.py",
        worker=(*_CELERY, "-c", "10"),
        noop=2_000,
        slow=1_000,
        timed_recovery=True,
    ),
    Peer(name="rq", script="peer_rq.py", noop=600, slow=100, timed_recovery=True),
)
"""Every tool at its defaults but for what its script says; forms that are slower are left out."""
