"""The PostgreSQL that the tests unpack: whole, or not at all."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from helpers.services import postgres_server
from helpers.services.postgres_server import NoPostgres, _unpack, _whole


def unpack_into(home: Path, *names: str) -> None:
    """Write empty files of an installation."""
    for name in names:
        file = home / ".pg0" / "installation" / "18.1.0" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


@pytest.fixture(name="pg0")
def _pg0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for pg0, whose first start unpacks the files that this list names."""
    files = ["bin/initdb", "share/extension/vector.control"]
    module = ModuleType("pg0")
    module.__file__ = str(tmp_path / "pg0.py")

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        unpack_into(Path(options["env"]["HOME"]), *files)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setitem(sys.modules, "pg0", module)
    monkeypatch.setattr(postgres_server, "runner", str)
    monkeypatch.setattr(subprocess, "run", run)
    return files


def test_what_was_cut_off_is_unpacked_again(tmp_path, pg0):
    """An unpacking without pgvector counts for nothing, whatever mark it has: it is replaced."""
    home = tmp_path / "postgres"
    unpack_into(home, "bin/initdb")
    (home / "done").write_text(str(home))
    assert _whole(home) is None
    programs = _unpack(home)
    assert programs == _whole(home)
    assert programs is not None
    assert (programs / "initdb").exists()
    assert not (home / "done").exists()


def test_an_unpacking_that_is_cut_off_leaves_nothing_at_its_place(tmp_path, pg0):
    """A first start that ends early is an error, and the next run begins anew."""
    pg0.remove("share/extension/vector.control")
    home = tmp_path / "postgres"
    with pytest.raises(NoPostgres, match="pgvector"):
        _unpack(home)
    assert not home.exists()
    pg0.append("share/extension/vector.control")
    assert _unpack(home) == _whole(home)
