"""`memorybus config show`, and completion for shells."""

import json

import pytest
from memorybus_console.cli import main


def test_settings_are_shown_with_their_origin(tmp_path, monkeypatch, capsys):
    """The command says which value holds and which file it read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memorybus.toml").write_text("batch = 7\n")
    assert main(["config", "show", "--json"]) == 0
    shown = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert shown["batch"] == {
        "name": "batch",
        "value": "7",
        "unit": "events",
        "origin": str(tmp_path / "memorybus.toml"),
        "meaning": "How many events a lane reads and commits at once.",
    }
    assert main(["config", "show"]) == 0
    said = capsys.readouterr()
    assert "batch" in said.out
    assert str(tmp_path / "memorybus.toml") in said.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.slow(reason="renders every command for a shell")
def test_shells_complete_the_commands(tmp_path, monkeypatch, shell):
    """The script that completes knows the commands."""
    monkeypatch.setenv("HOME", str(tmp_path))  # the script is named in the shell's start-up file
    script = tmp_path / "script"
    assert main(["completion", "--shell", shell, "--output", str(script)]) == 0
    assert "rebuild" in script.read_text()
