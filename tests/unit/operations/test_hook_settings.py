"""Hooks in a host's settings: what else stands there keeps its bytes."""

import json

import pytest
from memorybus.errors import ConfigError
from memorybus_console.operations.hook_settings import (
    CLAUDE_CODE,
    remove_hooks,
    with_hooks,
    without_hooks,
    write_hooks,
)

STEPS = CLAUDE_CODE.steps
COMMAND = "/venv/bin/memorybus-hook claude-code /data/hooks"
OTHER = '{"hooks": [{"type": "command", "command": "date"}]}'
SETTINGS = [
    "{}\n",
    "{ }",
    '{"model": "opus", "n": 1.50, "e": 1E3, "u": "\\u00e4ä"}',
    '{\n  "model": "opus",\n  "permissions": {"allow": [ "Bash(ls)" ]}\n}\n',
    '{\r\n\t"a": [],\r\n\t"a": {}\r\n}',
    f'{{\n  "hooks": {{\n    "Stop": [\n      {OTHER}\n    ]\n  }},\n  "z": null\n}}\n',
    '{"hooks": {"Stop": ["x", {"hooks": 7}, {"hooks": ["y", {"command": 7}]}]}}',
    f'{{"hooks": {{"Notification": [{OTHER}], "Stop": [{OTHER}, {OTHER}]}}}}',
]


@pytest.mark.parametrize("before", SETTINGS)
def test_what_else_stands_there_keeps_its_bytes(before):
    """Hooks are added and taken out between the bytes of the settings, and added once."""
    after = with_hooks(before, STEPS, COMMAND)
    assert without_hooks(after) == before
    assert with_hooks(after, STEPS, COMMAND) == after
    hooks = json.loads(after)["hooks"]
    assert [[hook["command"] for hook in hooks[step][-1]["hooks"]] for step in STEPS] == [
        [COMMAND]
    ] * len(STEPS)
    others = json.loads(before).get("hooks", {})
    assert {step: hooks[step][: len(others[step])] for step in others} == others


def test_another_command_of_ours_is_replaced():
    """After a move of the Python there is one hook a step, with the new command."""
    old = with_hooks(SETTINGS[5], STEPS, COMMAND.replace("/venv", "/old"))
    assert with_hooks(old, STEPS, COMMAND) == with_hooks(SETTINGS[5], STEPS, COMMAND)


def test_a_hook_that_a_person_moved_is_taken_out_alone():
    """A group that also has a hook of the person keeps that one."""
    both = json.dumps({"hooks": {"Stop": [{"hooks": [{"command": "date"}, {"command": COMMAND}]}]}})
    assert json.loads(without_hooks(both)) == {
        "hooks": {"Stop": [{"hooks": [{"command": "date"}]}]}
    }


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "// a note\n{}", '{"hooks": []}', '{"hooks": {"Stop": {}}}', "7"]
)
def test_settings_that_cannot_be_read_are_left_alone(tmp_path, text):
    """A file that is no JSON, or has other hooks than a host reads, is refused as it is."""
    file = tmp_path / "settings.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match="correct"):
        write_hooks(file, CLAUDE_CODE, tmp_path)
    assert file.read_text() == text


@pytest.mark.parametrize("before", [None, "{}", '{"hooks": {"Stop": []}}', *SETTINGS])
def test_uninstall_leaves_the_file_as_it_was(tmp_path, before):
    """The bytes, the mode and the link are those from before; a new file is gone again."""
    folder, file, real = tmp_path / "hooks", tmp_path / "settings.json", tmp_path / "dotfiles.json"
    folder.mkdir()
    if before is not None:
        real.write_bytes(before.encode())
        real.chmod(0o640)
        file.symlink_to(real)
    assert write_hooks(file, CLAUDE_CODE, folder)
    assert not write_hooks(file, CLAUDE_CODE, folder)
    assert remove_hooks(file, folder)
    assert not remove_hooks(file, folder)
    if before is None:
        assert not file.exists()
    else:
        assert (file.is_symlink(), real.read_bytes(), real.stat().st_mode & 0o777) == (
            True, before.encode(), 0o640,
        )  # fmt: skip
    assert [*folder.iterdir()] == []


def test_what_a_person_changed_meanwhile_stays(tmp_path):
    """Hooks that were installed before a change of the file are taken out of what it is now."""
    file = tmp_path / "settings.json"
    file.write_text('{"model": "opus"}')
    write_hooks(file, CLAUDE_CODE, tmp_path)
    file.write_text(file.read_text().replace("opus", "sonnet"))
    assert remove_hooks(file, tmp_path)
    assert file.read_text() == '{"model": "sonnet"}'
