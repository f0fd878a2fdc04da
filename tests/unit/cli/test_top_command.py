"""``memorybus top`` where it cannot run."""

import sys

from memorybus.errors import install_command
from memorybus_console.cli import main


def test_it_needs_a_terminal(capsys):
    """G10: in a pipe it names what to use there."""
    assert main(["top"]) == 2
    assert "memorybus status --watch --json" in capsys.readouterr().err


def test_it_says_what_to_install(monkeypatch, capsys):
    """G10: without the extra it names it."""
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    for name in [one for one in sys.modules if one.startswith("memorybus_console.top")]:
        monkeypatch.delitem(sys.modules, name)
    for name in {"textual", *(one for one in sys.modules if one.startswith("textual."))}:
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["top"]) == 2
    assert install_command("top") in capsys.readouterr().err
