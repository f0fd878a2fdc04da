"""Which providers play in the demo, and where they keep what they make of it."""

from typing import Any

import pytest
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.processes.reports import InstanceDescription
from memorybus_console.operations.demo import cast
from memorybus_console.operations.demo.cast import PACKAGED, Cast, choose_cast


def kind_of(delivery: str, *, by_home: bool = False, **place: str) -> InstanceDescription:
    """Return what a worker's process would say of an instance."""
    return InstanceDescription("far", delivery, "shared", by_home, place, (), ())


def chosen(what: InstanceDescription, monkeypatch: pytest.MonkeyPatch) -> Cast:
    """Choose an instance of the settings that is described so."""

    def describe(*_: Any) -> InstanceDescription:
        return what

    monkeypatch.setattr(cast, "describe_instance", describe)
    settings = Settings(provider={"far": {"kind": "x:Far", "url": "u"}})
    return choose_cast(settings, ["builtin", "far"], lambda: "a1b2c3")


def test_without_names_the_two_of_the_package_play() -> None:
    """Nothing is asked, and nothing lies outside of the demo's directory."""
    assert choose_cast(Settings(), []) is PACKAGED
    assert PACKAGED.outside == ()


def test_a_server_gets_the_demo_under_a_person_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody who is called like the demo's person gets its memories."""
    who = chosen(kind_of("lookup", prefix="mine"), monkeypatch)

    assert who.user == "Maren-a1b2c3"
    assert who.outside == ("far",)
    assert who.settings.provider["far"] == {"kind": "x:Far", "url": "u"}
    assert who.made == {}


def test_checkpoints_of_the_demo_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that keeps checkpoints gets a place of its own: the person's are of another log."""
    who = chosen(kind_of("transactional", schema="memories"), monkeypatch)

    assert who.settings.provider["far"] == {"kind": "x:Far", "url": "u", "schema": "mb_demo_a1b2c3"}
    assert who.made == {"far": "schema 'mb_demo_a1b2c3'"}


def test_a_store_without_a_place_of_its_own_does_not_play(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather no demo than one that moves the checkpoints of a person's log."""
    with pytest.raises(ConfigError, match="your own log's"):
        chosen(kind_of("transactional"), monkeypatch)
    assert chosen(kind_of("transactional", by_home=True), monkeypatch).made == {}
