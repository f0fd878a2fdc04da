"""The public API: what `memorybus` exports, that it can be imported, and that asking is cheap."""

import inspect
import json
import subprocess
import sys

import memorybus
import pytest

PUBLIC = (
    *("AsyncMemoryBus", "AsyncSession", "HostSessions", "Level", "MemoryBus", "OfferedTools"),
    *(
        "PacedPublisher",
        "KeyHistory",
        "RecallAnswer",
        "RecalledItem",
        "Receipt",
        "Scope",
        "Session",
    ),
    *("SessionRef", "Settings"),
    *("Tool", "TurnDetails", "clean_text", "load", "memory_write", "offered_tools"),
    *("session_details", "store_key"),
)

_LOADED = (
    "import json, sys, memorybus; print(json.dumps([m for m in sys.modules if 'memorybus' in m]))"
)


def test_the_public_names_are_these():
    """A name is added or taken away on purpose: here, in `__all__`, and in docs/agents.md."""
    assert memorybus.__all__ == sorted(PUBLIC)
    assert set(PUBLIC) <= set(dir(memorybus))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_there(name):
    """Every public name leads to what it names."""
    found = getattr(memorybus, name)
    assert name == "Level" or found.__name__ == name  # a `Literal` has no name of its own


KINDS = (property, classmethod, staticmethod)
"""Members that a class has instead of functions."""


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_explained(name):
    """What an agent uses has a docstring, and so has each method and property of its own."""
    thing = getattr(memorybus, name)
    members = vars(thing) if isinstance(thing, type) else {}
    own = [
        label
        for label, member in members.items()
        if not label.startswith("_") and (callable(member) or isinstance(member, KINDS))
    ]
    assert name == "Level" or thing.__doc__
    assert [label for label in own if not inspect.getdoc(getattr(thing, label))] == []


def test_another_name_is_an_error():
    """What is not exported is no attribute, as of any module."""
    with pytest.raises(AttributeError, match="no attribute 'Memorybus'"):
        memorybus.Memorybus  # noqa: B018


def test_importing_the_package_loads_nothing_else():
    """A provider that imports `memorybus.events` pays for no client."""
    shown = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(shown.stdout) == ["memorybus"]
