"""``memorybus provider setup``: by flags, and in a terminal."""

import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.processes.commands import Ran, run_command
from helpers.processes.terminals import Terminal
from helpers.providers.locked import KEY
from helpers.stories.described import troubles
from memorybus.config.secrets_file import SECRETS_NAME
from memorybus.config.settings import FILE_NAME, load

pytestmark = pytest.mark.timeout(120)

TESTS = Path(__file__).parents[3]
CLI = [sys.executable, "-m", "memorybus_console.cli", "provider", "setup"]
LOCKED = "safe=helpers.providers.locked:Locked"
Run = Callable[..., Ran]


@pytest.fixture(name="environ")
def _environ(short_dir: Path) -> dict[str, str]:
    """Return the environment of a host with nothing but a data directory."""
    own = {"MEMORYBUS_DATA_DIR": str(short_dir / "data"), "PYTHONPATH": str(TESTS)}
    return own | {"PATH": "/usr/bin:/bin", "TMPDIR": str(short_dir), "TERM": "dumb"}


@pytest.fixture(name="run")
def _run(short_dir: Path, environ: dict[str, str]) -> Run:
    """Run the command to its end, with lines on its standard input."""

    def run(*words: str, lines: str = "") -> Ran:
        whole = ("provider", "setup", *words)
        return run_command(environ, *whole, alone=True, directory=short_dir, lines=lines)

    return run


def everything(place: Path) -> str:
    """Return the text of all files below a directory, but for the secrets file."""
    files = (path for path in place.rglob("*") if path.is_file() and path.name != SECRETS_NAME)
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def test_a_script_sets_up_several_at_once(run, short_dir):
    """Each is tested and written; the secret stands in its file alone, which is private."""
    (short_dir / FILE_NAME).write_text('# mine\nnamespace = "mine"\n')
    words = ("builtin", LOCKED, "--set", "builtin.memory_limit=900", "--set", "safe.pace=deep")

    done = run(*words, "--secret", "safe.key_env", "--yes", "--json", lines=f"{KEY}\n")

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert not list(troubles(("provider", "setup"), done.stdout))
    assert [(one["name"], one["written"]) for one in report] == [("builtin", True), ("safe", True)]
    assert all(step["ok"] for one in report for step in one["steps"])
    settings = load(environ={}, directory=short_dir)
    assert settings.providers == ("builtin", "holographic", "safe")
    assert settings.provider_options("safe") == {"pace": "deep", "key_env": "SAFE_KEY"}
    assert settings.provider_options("builtin") == {"memory_limit": 900}
    assert (short_dir / FILE_NAME).read_text().startswith("# mine\n")
    assert stat.S_IMODE((short_dir / SECRETS_NAME).stat().st_mode) == 0o600
    assert KEY in (short_dir / SECRETS_NAME).read_text()
    assert KEY not in everything(short_dir) + done.stdout + done.stderr


def test_what_does_not_work_is_not_written(run, short_dir):
    """The error is the backend's own, on stderr; no file is made or changed."""
    done = run(LOCKED, "--secret", "key_env", "--yes", lines="wrong-key-entirely\n")

    assert done.returncode == 1
    assert "HTTP 401: wrong key" in done.stderr
    assert "nothing was written" in done.stderr
    assert done.stdout == ""
    assert not (short_dir / FILE_NAME).exists()
    assert not (short_dir / SECRETS_NAME).exists()
    assert list(short_dir.glob("memorybus-*")) == []


def test_a_model_that_cannot_be_fetched_is_not_set_up(run, short_dir):
    """A model named by its name is fetched before the trial; if that fails, nothing is written."""
    done = run("notes=holographic", "--set", "embedder=fastembed:nobody/nothing", "--yes")

    assert done.returncode == 1
    assert "nobody/nothing cannot be fetched" in done.stderr
    assert not (short_dir / FILE_NAME).exists()


def test_a_key_of_the_environment_is_named_and_not_copied(run, short_dir, environ):
    """The workers' environment may have it; then there is no secrets file."""
    environ["OFFICE_KEY"] = KEY

    done = run(LOCKED, "--set", "key_env=OFFICE_KEY", "--yes")

    assert done.returncode == 0, done.stderr
    assert load(environ={}, directory=short_dir).provider_options("safe")["key_env"] == "OFFICE_KEY"
    assert not (short_dir / SECRETS_NAME).exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("holographic",), "no terminal"),
        (("--yes",), "name what to set up"),
        (("holografic", "--yes"), "did you mean 'holographic'"),
        (("holographic", "--set", "embedder_batch=many", "--yes"), "must be a number"),
        (("holographic", "--set", "token=x", "--yes"), "no settings file"),
    ],
)
def test_wrong_usage_is_told_on_stderr(words, said, run):
    """Exit code 2, and nothing on standard output."""
    done = run(*words)

    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


# -- a person at a terminal ------------------------------------------------------------------------


@pytest.fixture(name="open_terminal")
def _open_terminal(short_dir: Path, environ: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    """Start the command at a terminal of its own."""
    opened: list[Terminal] = []

    def start(*words: str) -> Terminal:
        opened.append(Terminal([*CLI, *words], environ, short_dir))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_a_person_is_asked(open_terminal, short_dir):
    """Choices by number, a secret that is not echoed, the test, the change, and a yes."""
    terminal = open_terminal(LOCKED)
    terminal.see("key_env (not shown")
    terminal.type_secret(KEY)
    terminal.see("1 fast, 2 deep")
    terminal.see("pace")
    terminal.type("2")
    terminal.see("calls_per_second")
    terminal.type("4")
    terminal.see("daily_budget")
    terminal.type("")
    terminal.see("more options: change any?")
    terminal.type("")
    terminal.see("forget")
    terminal.see("+[provider.safe]")
    terminal.see("Write it?")
    terminal.type("")

    assert terminal.end() == 0, terminal.seen
    assert KEY not in terminal.seen
    settings = load(environ={}, directory=short_dir)
    assert settings.provider_options("safe") == {"key_env": "SAFE_KEY", "pace": "deep"}
    limits = settings.provider_limits("safe")
    assert (limits.calls_per_second, limits.daily_budget) == (4, 0)
    assert KEY in (short_dir / SECRETS_NAME).read_text()


def test_without_a_name_what_is_installed_is_shown(open_terminal, short_dir):
    """Each kind with its promise; several may be chosen; what does not change is not written."""
    terminal = open_terminal("--no-test")
    terminal.see("transactional")
    terminal.see("Which ones?")
    terminal.type("builtin")
    terminal.see("options: change any?")
    terminal.type("")

    assert terminal.end() == 0, terminal.seen
    assert "nothing written" in terminal.seen
    assert not (short_dir / FILE_NAME).exists()


@pytest.mark.parametrize("when", ["key_env (not shown", "Write it?"])
def test_ctrl_c_leaves_files_whole(when, open_terminal, short_dir):
    """Nothing was written before the last yes, and nothing is left behind; exit code 130."""
    (short_dir / FILE_NAME).write_text("# mine\n")
    terminal = open_terminal(LOCKED)
    terminal.see("key_env (not shown")
    if when == "Write it?":
        terminal.type_secret(KEY)
        for asked in ("pace", "calls_per_second", "daily_budget"):
            terminal.see(asked)
            terminal.type("")
        terminal.see("change any?")
        terminal.type("")
        terminal.see(when)
    os.killpg(terminal.process.pid, signal.SIGINT)

    assert terminal.end() == 130, terminal.seen
    assert "Traceback" not in terminal.seen
    assert (short_dir / FILE_NAME).read_text() == "# mine\n"
    assert not (short_dir / SECRETS_NAME).exists()
    assert list(short_dir.glob("memorybus-*")) == []
    assert KEY not in everything(short_dir)
