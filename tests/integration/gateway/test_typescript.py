"""The TypeScript client, built from our own document, against a real gateway and worker."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.making import MakeSettings
from helpers.stories.scenario import environ, patient, worker
from helpers.web.gateway import make_key

ROOT = Path(__file__).parents[3]
CLIENT = ROOT / "clients" / "typescript"

UNREACHED = re.compile(r"code (EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENOTFOUND|ETIMEDOUT|E40[13])")
"""What npm prints where there is no network, or a registry refuses."""

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]


def test_the_client_builds_and_keeps_its_promises(
    spawn, redis_url, make_settings: MakeSettings, tmp_path: Path
):
    """Its own tests pass: recall, undo, sending again, refusals, and both contracts of Ethos."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm: install Node 20")
    fetch_packages()
    providers = ("builtin", "holographic")
    settings = patient(make_settings(url=redis_url, providers=providers, partitions=2))
    worker(spawn, settings, jobs=1)
    command = ("-m", "memorybus", "serve", "--api", "--port", "0", "--json")
    child = spawn(*command, env=environ(settings))
    child.wait_output('"url"')
    address = re.search(r'"url":\s*"([^"]+)/"', child.output())
    assert address is not None
    given = {
        "MEMORYBUS_GATEWAY": address[1],
        "MEMORYBUS_KEY": make_key(settings, "*", agent="*"),
    }
    run(["make", "typescript"], ROOT, {})
    run(["npm", "test"], CLIENT, given)


def fetch_packages() -> None:
    """Install the client's packages; skip the test where no registry is reached."""
    ended = subprocess.run(
        ["npm", "ci", "--no-fund", "--no-audit"],
        cwd=CLIENT,
        capture_output=True,
        text=True,
        check=False,
    )
    unreached = UNREACHED.search(ended.stderr)
    if unreached is not None:
        pytest.skip(f"npm cannot fetch the packages: {unreached[0]}")
    assert ended.returncode == 0, ended.stderr


def run(command: list[str], directory: Path, environment: dict[str, str]) -> None:
    """Run a command to its end, and show what it printed if it failed."""
    ended = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
