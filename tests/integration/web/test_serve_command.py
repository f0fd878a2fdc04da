"""``memorybus serve`` and ``memorybus config page-token`` as processes."""

import json
import signal
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request

import pytest
from helpers.processes.commands import run_command
from helpers.stories.described import troubles
from helpers.stories.scenario import environ
from helpers.web.pages import HASH
from memorybus.errors import install_command
from memorybus_console.web.access import hash_token

STOPS = (signal.SIGTERM, signal.SIGINT)


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("stop", STOPS)
def test_it_serves_until_it_is_told_to_end(settings, spawn, stop):
    """It says where it listens and whether people may act, and ends with 0 while somebody looks."""
    child = spawn("-m", "memorybus", "serve", "--port", "0", "--json", env=environ(settings))
    child.wait_output('"url"')
    line = child.output().splitlines()[0]
    assert not list(troubles(("serve",), line))
    said = json.loads(line)
    assert said["acts"] is True
    assert _get(f"{said['url']}livez") == "alive\n"
    stream = urllib.request.Request(said["url"], headers={"Accept": "text/event-stream"})
    with urllib.request.urlopen(stream, timeout=20) as looking:
        assert looking.readline().startswith(b"data: ")
        child.send(stop)
        assert child.wait() == 0


def test_a_wrong_hash_or_a_taken_port_is_told(make_settings, redis_url, spawn):
    """Exit code 2, and what to do, without a traceback."""
    wrong = make_settings(url=redis_url, page_token="plain text")
    child = spawn("-m", "memorybus", "serve", "--port", "0", env=environ(wrong))
    assert child.wait(60) == 2
    assert "memorybus config page-token" in child.output()
    assert "Traceback" not in child.output()


def test_the_log_of_the_page_is_structured_and_masked(make_settings, redis_url, spawn):
    """What the server logs of a request that fails is a JSON line without credentials."""
    program = (
        "import sys; from memorybus.health import verdict; from memorybus_console.cli import main\n"
        "def fail(cache): raise KeyError('redis://ann:hunter2hunter2@host')\n"
        "verdict.BusStateCache.read = fail; sys.argv[1:] = ['serve', '--port', '0', '--json']\n"
        "sys.exit(main())"
    )
    child = spawn("-c", program, env=environ(make_settings(url=redis_url, log="json")))
    child.wait_output('"url"')
    with pytest.raises(urllib.error.HTTPError):
        _get(json.loads(child.output().splitlines()[0])["url"])
    child.wait_output("KeyError")
    lines = [json.loads(line) for line in child.output().splitlines()[1:]]
    assert any("redis://***@host" in line.get("exception", "") for line in lines)
    assert "hunter2" not in child.output()
    child.send(signal.SIGTERM)
    assert child.wait() == 0


def test_others_may_not_reach_what_nobody_guards(settings, spawn):
    """Without a token or a proxy it refuses an address that others reach."""
    child = spawn("-m", "memorybus", "serve", "--host", "0.0.0.0", env=environ(settings))
    assert child.wait(60) == 2
    assert "page_token" in child.output()


def test_the_first_start_makes_a_token_and_shows_it_once(settings, spawn):
    """The page's own token is printed once, is kept for its user alone, and lets people in."""
    words = ("-m", "memorybus", "serve", "--port", "0")
    child = spawn(*words, env=environ(settings))
    child.wait_output("Ctrl-C")
    token = settings.page_token_path.read_text().strip()
    assert child.output().count(token) == 1
    assert settings.page_token_path.stat().st_mode & 0o777 == 0o600
    url = next(word for word in child.output().split() if word.startswith("http://"))
    asked = urllib.request.Request(f"{url}memories", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=20) as answer:
        assert answer.status == 200
    assert child.terminate() == 0
    again = spawn(*words, env=environ(settings))
    again.wait_output("Ctrl-C")
    assert token not in again.output()
    assert settings.page_token_path.read_text().strip() == token


def test_a_token_is_shown_once_and_its_hash_fits_the_settings():
    """What is printed for the file is a line of it, and only the hash is there."""
    ran = run_command({}, "config", "page-token")
    assert ran.returncode == 0
    line = ran.output.splitlines()[-1]
    token = ran.output.splitlines()[0].rpartition(" ")[2]
    assert tomllib.loads(line)["page_token"].startswith("$argon2id$")
    assert token not in line


def test_the_hash_is_masked_where_settings_are_shown(make_settings):
    """The hash is a secret of the settings: no error and no command shows it."""
    assert HASH not in repr(make_settings(page_token=HASH))
    assert hash_token("x" * 20) != hash_token("x" * 20)


@pytest.mark.parametrize(
    ("words", "lacking"),
    [(["serve"], "starlette"), (["config", "page-token"], "argon2")],
    ids=["serve", "page-token"],
)
def test_without_the_extra_it_says_what_to_install(words, lacking):
    """Nothing of the page is loaded before it is asked for, and then the extra is named."""
    program = (
        "import sys; from memorybus_console.cli.app import main\n"
        f"assert {lacking!r} not in sys.modules\n"
        f"sys.modules[{lacking!r}] = None\n"
        f"sys.exit(main({words!r}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 2
    assert install_command("web") in ran.stderr
