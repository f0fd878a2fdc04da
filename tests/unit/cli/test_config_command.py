"""`memorybus config show`, and completion for shells."""

import json

import pytest
from memorybus.errors import ConfigError
from memorybus_console.cli import main
from memorybus_console.cli.options import parse_key_values


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


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("a=1", 1),
        ("a=1.5", 1.5),
        ("a=true", True),
        ("a=[1, 2]", [1, 2]),
        ("a=", ""),
        ("a=b=c", "b=c"),
        ("a='1'", "1"),
        ("a=inf", "inf"),
        ("a=-inf", "-inf"),
        ("a=nan", "nan"),
    ],
)
def test_a_value_is_what_toml_says_or_a_text(word, value):
    """A value that a record could not hold as it is, as `inf`, is not taken for a number."""
    assert parse_key_values([word]) == {"a": value}


@pytest.mark.parametrize("word", ["a", "=1", ""])
def test_a_word_without_a_name_or_a_value_is_refused(word):
    """G10: the error says what was given and what it must look like."""
    with pytest.raises(ConfigError, match="must read NAME=VALUE"):
        parse_key_values([word])


@pytest.mark.parametrize("name", ["api_key", "TOKEN", "db_password", "credentials"])
def test_secrets_are_refused(name):
    """A secret is named by where it belongs, and is not repeated."""
    with pytest.raises(ConfigError, match="environment") as refused:
        parse_key_values([f"{name}=hush"])
    assert "hush" not in str(refused.value)
