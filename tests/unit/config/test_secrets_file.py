"""The secrets file: who may read it, what stands in it, and where its values are seen."""

import os
from pathlib import Path

import pytest
from memorybus.config.secrets_file import SECRETS_NAME, is_variable, read_secrets
from memorybus.config.settings import FILE_NAME, Settings, load, load_secrets, to_environ
from memorybus.errors import ConfigError

KEY = "correct-horse-battery"


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    """Write a secrets file."""
    path.write_text(text)
    path.chmod(mode)
    return path


def test_its_lines_are_variables(tmp_path):
    """Comments are allowed; a file that is not there holds nothing."""
    path = written(tmp_path / "s.toml", f'# of the office\nHONCHO_API_KEY = "{KEY}"\n')

    assert read_secrets(path) == {"HONCHO_API_KEY": KEY}
    assert read_secrets(tmp_path / "none.toml") == {}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_may_read_is_refused(mode, tmp_path):
    """The error names the remedy."""
    path = written(tmp_path / "s.toml", f'A = "{KEY}"', mode)

    with pytest.raises(ConfigError, match="chmod 600"):
        read_secrets(path)


@pytest.mark.parametrize(
    "text",
    [
        f"A = {KEY}",
        f'A = "{KEY}',
        f'A "{KEY}"',
        f'[A]\nB = "{KEY}"',
        f'"a b" = "{KEY}"',
        f'A = ["{KEY}"]',
        f'A = "{KEY}\\u0000"',
    ],
)
def test_what_is_no_list_of_variables_is_refused_unquoted(text, tmp_path):
    """An error never repeats what may be a secret."""
    path = written(tmp_path / "s.toml", text)

    with pytest.raises(ConfigError) as refused:
        read_secrets(path)

    assert str(path) in str(refused.value)
    assert KEY not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("name", "may"), [("A", True), ("a_1", True), ("1A", False), ("A=B", False), ("", False)]
)
def test_a_variable_has_a_plain_name(name, may):
    """What a shell could not name is no variable."""
    assert is_variable(name) is may


def test_the_one_beside_the_settings_is_found(tmp_path):
    """It need not be named; the environment may name another."""
    (tmp_path / FILE_NAME).write_text("")
    assert load(environ={}, directory=tmp_path).secrets_file == ""
    beside = written(tmp_path / SECRETS_NAME, "")

    assert load(environ={}, directory=tmp_path).secrets_file == str(beside)
    named = {"MEMORYBUS_SECRETS_FILE": "/elsewhere"}
    assert load(environ=named, directory=tmp_path).secrets_file == "/elsewhere"


def test_the_one_beside_the_file_that_a_link_leads_to_is_found(tmp_path):
    """Settings that are linked to from elsewhere have their secrets where they lie."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.mkdir()
    (real / FILE_NAME).write_text("")
    (link / FILE_NAME).symlink_to(real / FILE_NAME)
    beside = written(real / SECRETS_NAME, "")

    assert load(environ={}, directory=link).secrets_file == str(beside.resolve())


def test_a_worker_has_its_variables_and_masks_their_values(tmp_path, monkeypatch):
    """What is set already wins; children get the file's name, and their own copy from it."""
    monkeypatch.setenv("SET_BEFORE", "the environment's")
    monkeypatch.setenv("FROM_FILE", "")
    monkeypatch.delenv("FROM_FILE")
    text = f'SET_BEFORE = "the file\'s"\nFROM_FILE = "{KEY}"\n'
    path = written(tmp_path / "s.toml", text)

    settings = load_secrets(Settings(secrets_file=str(path)))

    assert os.environ["SET_BEFORE"] == "the environment's"
    assert os.environ["FROM_FILE"] == KEY
    assert {KEY, "the environment's"} <= settings.secrets
    assert KEY not in repr(settings)
    assert load(environ=to_environ(settings, {})) == settings
    monkeypatch.delenv("FROM_FILE")


def test_without_a_file_nothing_changes():
    """Settings that name no file are those they were."""
    settings = Settings()
    assert load_secrets(settings) is settings
