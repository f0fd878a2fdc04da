"""What was known at a time: asked in Python and by command, and told where it cannot be said."""

import json

import pytest
from helpers.making import MakeSettings
from helpers.stories.scenario import worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus_console.cli.app import main

JANUARY, MARCH = 1_767_225_600_000, 1_772_323_200_000
QUESTION = "Where do I live?"


@pytest.fixture(name="settings")
def _settings(redis_url: str, make_settings: MakeSettings) -> Settings:
    return make_settings(url=redis_url, providers=("holographic", "builtin"))


def test_what_was_known_then(spawn, settings, capsys):
    """What was said later does not count; who cannot say is named with the reason (G9)."""
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", user="ana", warm=False)
        session.turn_completed("I live in Lisbon", "", at=JANUARY)
        session.turn_completed("I moved to Oslo", "", at=MARCH)
        assert bus.flush("logged", 30)
        then = bus.recall(QUESTION, user="ana", as_of=MARCH - 1, timeout=30)
        now = bus.recall(QUESTION, user="ana", timeout=30)

    assert [(one.text, one.until) for one in then.results] == [("I live in Lisbon", None)]
    assert list(then.missing) == ["builtin"]
    assert "what it knew then" in then.missing["builtin"]
    assert {(one.text, one.until, one.before) for one in now.results} == {
        ("I moved to Oslo", None, ""),
        ("I live in Lisbon", None, ""),
    }
    assert "[2026-03-01, user] I moved to Oslo" in now.text
    assert now.missing == {}

    where = ["--url", settings.url, "--namespace", settings.namespace, "--user", "ana", "--json"]
    capsys.readouterr()
    main(["recall", QUESTION, "--as-of", "2026-02-01", *where])
    said = capsys.readouterr()
    assert [one["text"] for one in json.loads(said.out)["results"]] == ["I live in Lisbon"]
    assert "builtin did not answer" in said.err
    assert main(["recall", QUESTION, "--as-of", "last week", *where]) == 2
