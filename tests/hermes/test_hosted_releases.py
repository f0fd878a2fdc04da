"""Hosted plugins with each release's own loader: where they are found, and what is missing."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.fake_hermes import PLUGINS
from helpers.hermes.hermes_agent import PYTHON, ROOT
from helpers.hosted.hosted import asking, calls, ended, hosted, opened, say
from helpers.hosted.hosted_steps import facts, play
from memorybus.errors import Permanent, Unavailable
from memorybus_providers.adapters.hermes.plugins import PLUGINS as KNOWN

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.releases,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Hermes Agent: run make hermes-venv"),
]

_CORE = "lib/python*/site-packages/plugins/memory/holographic"


@pytest.fixture
def place(short_dir: Path) -> Iterator[Path]:
    """Return a directory whose children end with the test."""
    with ended([short_dir]):
        yield short_dir


@pytest.fixture
def person(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the HERMES_HOME of the person who runs the workers."""
    home = place / "person"
    home.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    return home


@pytest.fixture
def installed(person: Path) -> None:
    """Install the plugin that left Hermes's core after 0.21, as the catalog does."""
    source = next(ROOT.glob(f".hermes-venv-0.21.5/{_CORE}"), None)
    if source is None:
        pytest.skip("no holographic to install: run make hermes-venv")
    shutil.copytree(source, person / "plugins" / "holographic")


@pytest.mark.usefixtures("installed")
def test_a_plugin_of_the_catalog_is_hosted_by_its_name(place):
    """What ``hermes plugins install`` put into the person's Hermes is hosted by name alone."""
    provider = opened("holographic", place / "home", PYTHON)
    play(provider, [("write", "add", "memory", "the kettle is copper")])
    recalled = [one.text for one in provider.prefetch("kettle", asking())]
    provider.shutdown()
    assert [row[1] for row in facts(place / "home" / "hermes")] == ["the kettle is copper"]
    assert any("kettle is copper" in text for text in recalled)


@pytest.mark.usefixtures("installed")
def test_a_failure_that_a_plugin_only_notes_fails_the_event(place):
    """A write that failed, as only a debug line of the plugin reports, counts as failed."""
    provider = opened("holographic", place / "home", PYTHON)
    play(provider, [("write", "add", "memory", "the kettle is copper")])
    with sqlite3.connect(place / "home" / "hermes" / "memory_store.db") as db:
        db.execute(
            "create trigger full before insert on facts begin select raise(abort, 'full'); end"
        )
    with pytest.raises(Permanent, match="full"):
        play(provider, [("write", "add", "memory", "the lamp is brass")])
    provider.shutdown()


def test_every_known_plugin_answers_or_names_the_cure(place, person):
    """Of each plugin the worker gets tools, or a sentence with what is missing and what to do."""
    told: dict[str, object] = {}
    for name in KNOWN:
        provider = hosted(name, place / name, PYTHON)
        try:
            told[name] = len(provider.get_tool_schemas())
        except Unavailable as error:
            told[name] = str(error)
    cures = "let the option hermes_home", "hermes plugins install {name}`"
    for name, answer in told.items():
        cured = [cure for cure in cures if cure.format(name=name) in str(answer)]
        assert isinstance(answer, int) or cured, (name, answer)


def test_a_missing_plugin_names_the_command_that_installs_it(place, person):
    """The error of a plugin that is nowhere says where it was looked for, and the next command."""
    provider = hosted("nowhere", place / "home", PYTHON)
    with pytest.raises(Unavailable) as raised:
        provider.open()
    provider.shutdown()
    assert f"HERMES_HOME={person} hermes plugins install nowhere" in str(raised.value)
    assert str(person / "plugins") in str(raised.value)


def test_a_plugin_that_is_installed_later_is_found(place, person):
    """A lane that waited for a plugin goes on once it is installed: no restart is needed."""
    provider = hosted("mine", place / "home", PYTHON)
    with pytest.raises(Unavailable, match="hermes plugins install mine"):
        provider.open()
    shutil.copytree(PLUGINS / "recorder", person / "plugins" / "mine")
    say(provider, "hello")
    provider.shutdown()
    assert [one["text"] for one in calls(place / "home" / "hermes", "turn")] == ["hello"]


def test_a_hosted_plugin_runs_in_its_child_alone(place, person):
    """A Hermes that isolates plugins (``plugins.isolation``) does not move a hosted one away."""
    (person / "config.yaml").write_text("plugins:\n  isolation: host\n")
    shutil.copytree(PLUGINS / "recorder", person / "plugins" / "mine")
    provider = opened("mine", place / "home", PYTHON, hermes_home=str(person))
    say(provider, "!thread works")
    provider.shutdown()
    assert [one["text"] for one in calls(person, "turn")] == ["!thread works"]
