"""An S3 for tests: moto's server, in an environment of its own under ``.servers``.

It speaks the protocol over HTTP, conditional writes included, and keeps everything in memory: a
stand-in, no object store. None of those (MinIO, SeaweedFS, Garage, Ceph's gateway alone) is in the
registries that this project uses.
"""

import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

from helpers.processes.waiting import wait_until
from helpers.redis.binaries import FETCHED
from helpers.redis.clusters import free_ports

PACKAGE = "moto[server,s3]==5.2.5"
HOME = FETCHED / "moto"
WHY = FETCHED / "moto.missing"
BUCKET = "archive"
_TIMEOUT = 600


def main() -> None:
    """Fetch it; never fail: who cannot get it runs the tests without it."""
    FETCHED.mkdir(exist_ok=True)
    try:
        if not (HOME / "bin" / "moto_server").exists():
            _run(sys.executable, "-m", "venv", str(HOME))
            pip = ("-m", "pip", "--disable-pip-version-check", "install", "-q", PACKAGE)
            _run(str(HOME / "bin" / "python"), *pip)
        WHY.unlink(missing_ok=True)
        sys.stdout.write(f"moto: {PACKAGE}\n")
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(HOME, ignore_errors=True)
        WHY.write_text(" ".join(str(error).split())[-300:])
        sys.stdout.write(f"moto: cannot be had here: {WHY.read_text()}\n")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command[:4])}: {done.stderr.strip()}")


@pytest.fixture
def s3_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the URL of an empty bucket; the environment has its address and credentials."""
    program = HOME / "bin" / "moto_server"
    if not program.exists():
        said = f" (last time: {WHY.read_text()})" if WHY.exists() else ""
        pytest.skip(f"moto is not here; get it: make servers{said}")
    (port,) = free_ports(1)
    where = f"http://127.0.0.1:{port}"
    command = [program, "-H", "127.0.0.1", "-p", str(port)]
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
    main()
