"""The table `[notify]`: from the file, the environment, and never shown whole."""

import json
from pathlib import Path
from typing import Any

import pytest
from memorybus.config.notify import Notify
from memorybus.config.origins import effective_settings
from memorybus.config.settings import load, read_layers, to_environ
from memorybus.errors import ConfigError, UnknownSetting

SECRET = "https://hooks.example.org/services/T0/B0/abcdefgh"


def of_file(tmp_path: Path, text: str) -> Notify:
    """Return the table as a settings file has it."""
    (tmp_path / "memorybus.toml").write_text(text)
    return load(environ={}, directory=tmp_path).notify


def test_the_table_is_read_and_handed_on(tmp_path: Path) -> None:
    """G10: a worker's supervisor finds what the file says, whatever its words hold."""
    words = ["notify-send", "a, b", "c\nd"]
    made = of_file(
        tmp_path, f'[notify]\nurl = "{SECRET}"\ncommand = {json.dumps(words)}\nafter = 5\n'
    )
    assert (made.url, made.command, made.after, made.again) == (SECRET, tuple(words), 5.0, 14_400.0)
    assert made.channels == ("webhook", "command")
    settings = load(environ={}, directory=tmp_path)
    assert load(environ=to_environ(settings, {}), directory=tmp_path / "no").notify == made


def test_nobody_is_told_by_default(tmp_path: Path) -> None:
    """G10: no message leaves a machine unless somebody wants it."""
    assert load(environ={}, directory=tmp_path).notify.channels == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('url = "ftp://h/x"', "must begin with https:// or http://"),
        ('url = "http://h/"\nurl_env = "HOOK"', "url or url_env, not both"),
        ("timeout = 0", "timeout must be more than 0 s"),
        ("after = -1", "notify"),
        ("again = inf", "again must be a number of seconds"),
        ('severity = "fatal"', "notify"),
        ('command = [""]', "must begin with a program"),
        ('command = "rm -rf"', "notify"),
    ],
)
def test_what_is_impossible_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """G10: a mistake is told when the settings are read, not on the night of the alarm."""
    with pytest.raises(ConfigError, match=said):
        of_file(tmp_path, f"[notify]\n{text}\n")


def test_an_unknown_name_is_told_with_the_nearest(tmp_path: Path) -> None:
    """G10: `ulr` would be a webhook that is never asked."""
    with pytest.raises(UnknownSetting, match="did you mean 'url'"):
        of_file(tmp_path, f'[notify]\nulr = "{SECRET}"\n')
    with pytest.raises(UnknownSetting, match="did you mean 'again'"):
        load(environ={"MEMORYBUS_NOTIFY": '{"agayn": 3}'}, directory=tmp_path / "no")


def test_the_address_is_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G9: a webhook's address is a key; a variable's value is masked, too."""
    monkeypatch.setenv("HOOK", SECRET)
    for given in ({"url": SECRET}, {"url_env": "HOOK"}):
        table: Any = {"notify": given}
        settings = load(environ={}, directory=tmp_path, **table)
        shown = effective_settings(read_layers(environ={}, directory=tmp_path, **table))
        assert SECRET in settings.secrets
        assert "abcdefgh" not in repr(settings) + "".join(one.value for one in shown)
