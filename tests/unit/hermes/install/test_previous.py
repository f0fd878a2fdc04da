"""The memory providers that a Hermes has configured, and what of them is taken over."""

import json
from pathlib import Path
from typing import Any

import pytest
from memorybus.processes.reports import KindOffer, OptionField
from memorybus_console.cli.hermes.takeover import (
    describe_previous,
    native_options,
    takeover_kinds,
    without_secrets,
)
from memorybus_hermes.home import HermesHome
from memorybus_hermes.install.previous import PreviousProvider, read_previous

KEY = "hch-0123456789abcdef"


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> HermesHome:
    """Return an empty Hermes home below a person's."""
    (tmp_path / ".hermes").mkdir()
    return HermesHome(tmp_path / ".hermes", "default")


def written(path: Path, value: Any) -> None:
    """Write JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def found(home: HermesHome) -> dict[str, PreviousProvider]:
    """Return what a home has, by plugin."""
    return {one.plugin: one for one in read_previous(home, home.path.parent)}


def test_an_empty_home_has_none(home):
    """Nothing is made up, also where a file is no JSON."""
    assert found(home) == {}
    written(home.path / "mem0.json", "{oops")
    assert found(home) == {}


def test_honcho_is_read_as_its_plugin_reads_it(home):
    """The block of the profile goes before the rest of the file."""
    block = {"workspace": "hermes", "peerName": "ann", "apiKey": KEY}
    raw = {"baseUrl": "http://localhost:8000", "workspace": "x", "hosts": {"hermes": block}}
    written(home.path / "honcho.json", raw)

    one = found(home)["honcho"]

    assert one.settings == {
        "base_url": "http://localhost:8000",
        "workspace": "hermes",
        "user_id": "ann",
    }
    assert one.secrets == {"HONCHO_API_KEY": KEY}
    assert one.source == str(home.path / "honcho.json")


def test_a_profile_has_its_block_in_the_shared_file(home):
    """A profile without a file of its own finds itself in the default home's, and no other."""
    hosts = {"hermes": {"workspace": "mine"}, "hermes_coder": {"workspace": "coder"}}
    written(home.path / "honcho.json", {"hosts": hosts})
    profile = HermesHome(home.path / "profiles" / "coder", "coder")
    other = HermesHome(home.path / "profiles" / "cook", "cook")

    assert read_previous(profile, home.path.parent)[0].settings == {"workspace": "coder"}
    assert read_previous(other, home.path.parent) == []


def test_mem0_and_hindsight_are_read_with_their_keys(home):
    """A key stands in their files, or in ``.env``; one that is empty is none."""
    written(home.path / "mem0.json", {"mode": "selfhosted", "host": "http://m:1", "user_id": "ann"})
    banks = {"hermes": {"bankId": "b1"}}
    written(home.path / "hindsight" / "config.json", {"mode": "local_external", "banks": banks})
    env = f"# keys\nexport MEM0_API_KEY='{KEY}'\nHINDSIGHT_API_KEY=\nHINDSIGHT_API_URL=http://h:2\n"
    (home.path / ".env").write_text(env)

    have = found(home)

    mem0 = {"mode": "selfhosted", "base_url": "http://m:1", "user_id": "ann"}
    assert have["mem0"].settings == mem0
    assert have["mem0"].secrets == {"MEM0_API_KEY": KEY}
    hindsight = {"mode": "local_external", "base_url": "http://h:2", "bank": "b1"}
    assert have["hindsight"].settings == hindsight
    assert have["hindsight"].secrets == {}


def test_keys_alone_are_settings_enough(home):
    """Mem0 and Hindsight need no file."""
    (home.path / ".env").write_text(f"MEM0_API_KEY={KEY}\nHINDSIGHT_API_KEY={KEY}\n")

    assert {name: one.secrets for name, one in found(home).items()} == {
        "mem0": {"MEM0_API_KEY": KEY},
        "hindsight": {"HINDSIGHT_API_KEY": KEY},
    }


def test_the_active_one_comes_first(home):
    """Also one that has no file we know; the bus itself is none to take over."""
    written(home.path / "mem0.json", {"mode": "oss"})
    home.config.write_text("memory:\n  provider: retaindb\n")
    assert [(one.plugin, one.active) for one in read_previous(home, home.path.parent)] == [
        ("retaindb", True),
        ("mem0", False),
    ]
    home.config.write_text("memory:\n  provider: memorybus\n")
    assert list(found(home)) == ["mem0"]


def test_no_secret_is_shown():
    """Neither to people nor to programs, nor in a trace; an address loses its password."""
    facts = {"base_url": "http://ann:hunter2hunter2@h:8000"}
    one = PreviousProvider("honcho", "honcho.json", settings=facts, secrets={"A_KEY": KEY})

    for text in (describe_previous(one), repr(without_secrets(one)), repr(one)):
        assert KEY not in text
        assert "hunter2" not in text
    assert "A_KEY" in describe_previous(one)


@pytest.mark.parametrize(
    ("plugin", "settings", "found"),
    [
        ("honcho", {}, ["hermes:honcho", "honcho"]),
        ("hindsight", {}, ["hermes:hindsight", "hindsight"]),
        ("mem0", {"base_url": "http://m:1"}, ["hermes:mem0", "mem0-server"]),
        ("mem0", {"mode": "platform"}, ["hermes:mem0"]),
        ("retaindb", {}, ["hermes:retaindb"]),
    ],
)
def test_there_are_one_or_two_ways(plugin, settings, found):
    """Hosted always; by the bus's own provider where that reaches the same backend."""
    assert takeover_kinds(PreviousProvider(plugin, "x", settings=settings)) == found


def test_hindsight_without_an_address_is_where_its_plugin_looks(home):
    """Its cloud, or the server of this machine."""
    for mode, url in (("cloud", "https://api.hindsight"), ("local_embedded", "http://localhost")):
        written(home.path / "hindsight" / "config.json", {"mode": mode})
        assert found(home)["hindsight"].settings["base_url"].startswith(url)


def test_settings_become_options_by_their_names():
    """What the schema of the bus's own provider lacks is left out."""
    options = (OptionField("base_url"), OptionField("workspace_id"), OptionField("budget"))
    facts = {"base_url": "http://h", "workspace": "w", "user_id": "ann", "strange": "x"}
    one = PreviousProvider("honcho", "honcho.json", settings=facts)

    found = native_options(KindOffer("honcho", options=options), one)

    assert found == ["base_url=http://h", "workspace_id=w"]
