"""An S3 for tests: moto's server, in an environment of its own under ``.servers``.

It speaks the protocol over HTTP, conditional writes included, and keeps everything in memory: a
stand-in, no object store. None of those (MinIO, SeaweedFS, Garage, Ceph's gateway alone) is in the
registries that this project uses.
"""

import subprocess
import urllib.request
from collections.abc import Iterator

import pytest

from helpers.processes.waiting import wait_until
from helpers.redis.clusters import free_ports
from helpers.services.fetched import FETCHED, fetch, installed, skip_without

PACKAGE = "moto[server,s3]==5.2.5"
_PROGRAM = FETCHED / "moto" / "bin" / "moto_server"
BUCKET = "archive"


def _release() -> str:
    if not _PROGRAM.exists():
        installed(FETCHED / "moto", PACKAGE)
    return PACKAGE


@pytest.fixture
def s3_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the URL of an empty bucket; the environment has its address and credentials."""
    if not _PROGRAM.exists():
        skip_without("moto")
    (port,) = free_ports(1)
    where = f"http://127.0.0.1:{port}"
    command = [_PROGRAM, "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _made(where), f"moto answers on {where}", timeout=30)
        for name, value in environment(where).items():
            monkeypatch.setenv(name, value)
        yield f"s3://{BUCKET}/memories"
    finally:
        server.kill()
        server.wait()


def environment(where: str) -> dict[str, str]:
    """Return the variables with which a client finds the server at an address."""
    return {
        "AWS_ENDPOINT_URL": where,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "very-secret",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }


def _made(where: str) -> bool:
    request = urllib.request.Request(f"{where}/{BUCKET}", method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=5):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    fetch("moto", _release)
