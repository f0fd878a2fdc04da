"""A Redis over TLS: `rediss://` with the authority that signed its certificate."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.making import MakeServer, MakeSettings
from helpers.redis.binaries import available
from helpers.redis.clusters import free_ports
from memorybus.agent.client import MemoryBus
from memorybus.errors import LogUnavailable
from memorybus.health.monitor import read_status

Url = Callable[[str], str]


@pytest.fixture(name="authority")
def _authority(tmp_path: Path) -> Path:
    """Return the certificate of an authority, beside that of a server which it signed."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not here, which makes the certificates")
    ca, server = ("-CA", "ca.pem", "-CAkey", "ca.key"), ("-addext", "subjectAltName=IP:127.0.0.1")
    for name, *signed in (("ca",), ("server", *server, *ca)):
        made = ("-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        words = (openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        subprocess.run(
            [*words, "-nodes", "-days", "2", *made, *signed],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    return tmp_path / "ca.pem"


@pytest.fixture(name="url")
def _url(make_redis: MakeServer, authority: Path) -> Url:
    """Return what makes the URL of a server that speaks TLS alone, with these options."""
    (port,) = free_ports(1)
    folder = authority.parent
    make_redis(
        binary=available("redis-7.0").path,  # the embedded Valkey is built without TLS
        tls_port=port,
        bind="127.0.0.1",
        appendonly="yes",
        tls_auth_clients="no",
        tls_ca_cert_file=authority,
        tls_cert_file=folder / "server.pem",
        tls_key_file=folder / "server.key",
    )
    return lambda options: f"rediss://127.0.0.1:{port}/0{options}"


def test_an_agent_reaches_redis_by_the_authority_that_it_names(
    url: Url, authority: Path, make_settings: MakeSettings
) -> None:
    """G1: with `ssl_ca_certs` the certificate is checked, and events reach the log."""
    settings = make_settings(url=url(f"?ssl_ca_certs={authority}"))
    with MemoryBus.connect(settings) as bus:
        bus.session("s", agent="a", user="u").turn_completed("hello", "there")
        assert bus.flush("logged", timeout=20)
    assert read_status(settings).log.published >= 1


def test_a_certificate_of_a_stranger_is_refused(url: Url, make_settings: MakeSettings) -> None:
    """G1: without the authority nothing is sent, and the error names the certificate."""
    with pytest.raises(LogUnavailable, match=r"(?i)certificate"):
        read_status(make_settings(url=url("")))
