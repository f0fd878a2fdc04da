"""``memorybus notify test``: whether people would be told."""

import json
import sys
from pathlib import Path

import pytest
from helpers.services.faulty_http import Fault
from helpers.services.webhook_server import PATH, webhook_server
from memorybus.surfaces.cli import main


def configured(monkeypatch: pytest.MonkeyPatch, **table: object) -> None:
    """Let commands find the table."""
    monkeypatch.setenv("MEMORYBUS_NOTIFY", json.dumps(table))


def test_a_test_goes_to_each_channel_with_the_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """G10: what workers would do is tried beforehand, without Redis; the address comes from a file
    that its user alone may read.
    """
    secrets = tmp_path / "memorybus.secrets.toml"
    monkeypatch.setenv("MEMORYBUS_SECRETS_FILE", str(secrets))
    out = tmp_path / "heard"
    code = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
    with webhook_server() as hook:
        secrets.write_text(f'THE_HOOK = "{hook.hook}"\nTHE_TOKEN = "tk_12345678"\n')
        secrets.chmod(0o600)
        for name in ("THE_HOOK", "THE_TOKEN"):
            monkeypatch.setenv(name, "")  # so that what is added is taken away again
            monkeypatch.delenv(name)
        command = [sys.executable, "-c", code, str(out)]
        configured(monkeypatch, url_env="THE_HOOK", token_env="THE_TOKEN", command=command)
        assert main(["notify", "test", "--json"]) == 0
        assert hook.keys == ["Bearer tk_12345678"]
        (told,) = hook.notices
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["channel"], one["ok"]) for one in lines] == [("webhook", True), ("command", True)]
    assert told["kind"] == json.loads(out.read_text())["kind"] == "test"


def test_a_failure_is_told_without_the_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """G9, G10: exit code 1 and the reason, in which no secret stands."""
    with webhook_server() as hook:
        hook.faults.append(Fault(PATH, 403))
        configured(monkeypatch, url=hook.hook, command=["no-such-program"])
        assert main(["notify", "test"]) == 1
        asked = list(hook.asked)
    said = capsys.readouterr().err
    assert "webhook: not taken" in said
    assert "it answers 403" in said
    assert "no-such-program" in said
    assert PATH not in said
    assert asked == [("POST", PATH)]


def test_nobody_configured_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """G10: a test that nobody could hear says what to write."""
    configured(monkeypatch)
    assert main(["notify", "test"]) == 2
    assert "[notify]" in capsys.readouterr().err
