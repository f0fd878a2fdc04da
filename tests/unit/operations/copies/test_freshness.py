"""Whose state a copy would write into, by what is known of the others; as tables (G8)."""

import pytest
from helpers.providers.recording import Blind
from memorybus.config.settings import Settings
from memorybus.processes.reports import InstanceDescription
from memorybus.registry.instances import Instance, InstancesView
from memorybus_console.operations.copies.generations import (
    describe_remedy,
    describe_shared_state,
    owner_of,
)
from memorybus_workers.provider_commands.offers import describe

LOCAL = InstanceDescription("kind", "keyed", "local", True, {})
SHARED = InstanceDescription(
    "kind", "keyed", "shared", False, {"collection": "main"}, ("collection", "model")
)
UNNAMED = InstanceDescription("kind", "keyed", "shared", False, {})


def copy(name: str, **options: object) -> Instance:
    """Return a copy of ``p``."""
    return Instance(name=name, provider="p", options=options)


class Defaulted(Blind):
    """A shared one whose schema says where it lies if nobody else does."""

    fresh_by_home = False
    fresh_options = ("collection",)

    @classmethod
    def get_config_schema(cls) -> list[dict[str, str]]:
        """Return the one option."""
        return [{"key": "collection", "description": "where", "default": "a"}]


KIND = {"kind": f"{__name__}:Defaulted"}

SEEN = (
    copy("p@1", collection="two", model="new"),
    Instance(name="gone", provider="p", options={"collection": 3}, dropped=True),
    Instance(name="q@1", provider="q", options={"collection": "four"}),
)


@pytest.mark.parametrize(
    ("what", "options", "owner"),
    [
        (LOCAL, {}, ""),
        (SHARED, {}, "p"),
        (SHARED, {"model": "new"}, "p"),
        (SHARED, {"collection": "main"}, "p"),
        (SHARED, {"collection": "two"}, "p@1"),
        (SHARED, {"collection": "3"}, "gone"),
        (SHARED, {"collection": "four"}, ""),
        (UNNAMED, {"model": "new"}, "p"),
    ],
)
def test_a_place_is_compared_with_every_other(what, options, owner):
    """G8: to name the option is not enough: its value must be none that an instance has."""
    view = InstancesView({one.name: one for one in SEEN})
    assert owner_of(what, copy("new", **options), view, {}) == owner


def test_a_copy_is_not_its_own_rival():
    """G8: what is asked for again is compared with the others only."""
    assert owner_of(SHARED, SEEN[0], InstancesView({one.name: one for one in SEEN}), {}) == ""


def test_a_refusal_says_what_to_do():
    """G8: who is refused is told the option, or, where there is none, another way."""
    said = describe_shared_state(copy("new"), "p@1")
    assert said == "a copy of p would write where p@1 does: its state is shared"
    assert "--set collection=…" in describe_remedy(SHARED, "new")
    assert "provider setup" in describe_remedy(UNNAMED, "new")


def test_where_an_instance_lies_is_told():
    """G8: the place is the settings' own, whatever the copy is given."""
    tables = {"rec": {"kind": "helpers.providers.recording:KeyedShared", "collection": "one"}}
    found = describe(Settings(provider=tables), "rec", "copy", {"collection": "two"})
    assert (found.by_home, found.place) == (False, {"collection": "one"})
    assert describe(Settings(provider={"rec": KIND}), "rec", "copy", {}).place == {
        "collection": "a"
    }
    assert describe(Settings(providers=("builtin",)), "builtin", "copy", {}).by_home
