"""``memorybus ingest`` as a person sees it: what it says when it is interrupted."""

import json
from pathlib import Path

import pytest
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.surfaces.cli import main


def test_interrupted_turns_say_what_stays(
    ready: Settings,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G2: Ctrl-C among the turns of a conversation keeps the first; the next run adds the rest."""
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join(json.dumps({"role": "user", "content": text}) for text in "abc"))
    with monkeypatch.context() as patched:
        turn_completed = Session.turn_completed

        def interrupted(session: Session, user: str, *args: object, **more: object) -> object:
            if user == "b":
                raise KeyboardInterrupt
            return turn_completed(session, user, *args, **more)  # type: ignore[arg-type]

        patched.setattr(Session, "turn_completed", interrupted)
        assert main(["ingest", str(file)]) == 130
    assert "the same command publishes the rest" in capsys.readouterr().err
    assert main(["ingest", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new_events"] == 2
