"""The wheel of `make dist`, installed alone into a fresh environment."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_SHOWN = "import apprise, obstore, prometheus_client, psycopg, starlette, textual, memorybus.errors"

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]


def run(*command, **options):
    """Run a command; return what it prints."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_with_all_runs_what_its_pages_show(tmp_path):
    """`pip install dist/….whl[all]` brings commands, page, `top`, metrics and a server."""
    run("make", "dist", f"PY={sys.executable}", cwd=ROOT)
    [wheel] = (ROOT / "dist").glob("*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[all]", cwd=tmp_path)
    fresh = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    command = f"{_SHOWN}; print(memorybus.errors.install_command('mem0'))"
    shown = run(python, "-c", command, cwd=tmp_path, env=fresh)
    assert shown == f"pip install {wheel}[mem0]\n" or shown == f"pip install '{wheel}[mem0]'\n"
    demo = run(tmp_path / "venv/bin/memorybus", "demo", cwd=tmp_path, env=fresh)
    assert "From holographic:" in demo
