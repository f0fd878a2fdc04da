"""Messages name a command that installs what is missing, from where memorybus came."""

import json
from importlib.metadata import Distribution, PackageNotFoundError

import pytest
from memorybus.errors import install_command


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, "pip install 'memorybus[web]'"),
        ({"url": "file:///src/bus", "dir_info": {}}, "pip install '/src/bus[web]'"),
        (
            {"url": "file:///src/a%20bus", "dir_info": {"editable": True}},
            "pip install -e '/src/a bus[web]'",
        ),
        ({"url": "file:///d/m-1-py3.whl", "archive_info": {}}, "pip install '/d/m-1-py3.whl[web]'"),
        ({"url": "https://h/m.whl"}, "pip install 'memorybus[web] @ https://h/m.whl'"),
    ],
)
def test_the_command_names_what_is_there(monkeypatch, origin, expected):
    """A checkout and a wheel are named by their path; only an index has the bare name."""

    class Installed:
        def read_text(self, name):
            assert name == "direct_url.json"
            return None if origin is None else json.dumps(origin)

    monkeypatch.setattr(Distribution, "from_name", lambda _: Installed())
    assert install_command("web") == expected


def test_what_is_not_installed_is_named_as_it_is(monkeypatch):
    """A package without metadata is named alone."""

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(Distribution, "from_name", missing)
    assert install_command() == "pip install 'memorybus'"
