"""A real PgBouncer in transaction mode before the tests' PostgreSQL, from Debian's package."""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import psycopg

from helpers.processes.waiting import wait_until
from helpers.services.debian_programs import DebianPrograms
from helpers.services.postgres_server import PostgresServer, as_runner, runner

PGBOUNCER = DebianPrograms(
    "pgbouncer",
    ("pgbouncer", "libc-ares2", "libevent-2.1-7"),
    MappingProxyType({"pgbouncer": "usr/sbin/pgbouncer"}),
)
_PORT = 6432
_POOL = 8
_CONFIG = """
[databases]
* = host={server}
[pgbouncer]
pool_mode = transaction
server_round_robin = 1
default_pool_size = {pool}
max_client_conn = 200
query_wait_timeout = {wait}
server_login_retry = 1
listen_addr =
listen_port = {port}
unix_socket_dir = {place}
auth_type = trust
auth_file = {place}/users
admin_users = postgres
"""


class PgBouncer:
    """One that runs. It gives each transaction another connection of its pool than the last.

    Attributes:
        process: its process.
    """

    def __init__(self, place: Path, process: "subprocess.Popen[bytes]") -> None:
        self._place, self.process = place, process

    def url(self, database: str, user: str = "postgres") -> str:
        """Return a connection string through it."""
        return f"host={self._place} port={_PORT} dbname={database} user={user}"

    def pause(self) -> None:
        """Answer nobody until `resume`."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Go on."""
        self.process.send_signal(signal.SIGCONT)

    def answers(self) -> bool:
        assert self.process.poll() is None, (self._place / "log").read_text()[-2000:]
        try:
            with psycopg.connect(self.url("pgbouncer"), connect_timeout=2, autocommit=True):
                return True
        except psycopg.OperationalError:
            return False


@contextmanager
def pgbouncer(server: PostgresServer, *, pool: int = _POOL, wait: int = 5) -> Iterator[PgBouncer]:
    """Run one before a server; skip the test if it is not here.

    Args:
        server: the PostgreSQL.
        pool: connections to the server for each database and user.
        wait: seconds that a query waits for one of them.
    """
    program = PGBOUNCER.program("pgbouncer")
    place = Path(tempfile.mkdtemp(prefix="mb-b-"))
    given = {"server": server.directory, "pool": pool, "wait": wait, "port": _PORT, "place": place}
    (place / "pgbouncer.ini").write_text(_CONFIG.format_map(given))
    (place / "users").write_text('"postgres" ""\n')
    if runner():
        shutil.chown(place, runner())
    environment: Mapping[str, str] = PGBOUNCER.environment
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, place / "pgbouncer.ini"],
            env=environment, stdout=log, stderr=log, start_new_session=True, **as_runner(),
        )  # fmt: skip
    bouncer = PgBouncer(place, process)
    try:
        wait_until(bouncer.answers, f"PgBouncer answers in {place}", timeout=60)
        yield bouncer
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    PGBOUNCER.fetch()
