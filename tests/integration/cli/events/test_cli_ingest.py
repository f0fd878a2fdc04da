"""``memorybus ingest`` as a person sees it: what it reports, and whose memories it brings."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from helpers.processes.commands import result_of
from helpers.stories.published import envelopes
from memorybus.agent.session import Session
from memorybus.events import SessionStarted, SessionSwitched, TurnCompleted
from memorybus_console.cli import main


def test_interrupted_turns_say_what_stays(ready, tmp_path, capsys, monkeypatch):
    """G2: Ctrl-C among the turns of a conversation keeps the first; the next run adds the rest."""
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join(json.dumps({"role": "user", "content": text}) for text in "abc"))
    with monkeypatch.context() as patched:
        turn_completed = Session.turn_completed

        def interrupted(session: Session, user: str, *args: object, **more: object) -> object:
            if user == "b":
                raise KeyboardInterrupt
            return turn_completed(session, user, *args, **more)

        patched.setattr(Session, "turn_completed", interrupted)
        assert main(["ingest", str(file)]) == 130
    assert "the same command publishes the rest" in capsys.readouterr().err
    assert main(["ingest", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new_events"] == 2


def ingested(
    capsys: pytest.CaptureFixture[str], file: Path, *options: str
) -> tuple[int, dict[str, Any]]:
    """Ingest a file with --json; return the exit code and the report."""
    return result_of(capsys, "ingest", str(file), *options)


def said(text: str, **more: object) -> str:
    """Return a user's message as a line."""
    return json.dumps({"role": "user", "content": text} | more)


def test_lines_that_cannot_be_read_are_reported_and_the_others_enter(ready, tmp_path, capsys):
    """The report counts unreadable lines, and names each with its place and the reason."""
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join((said("a"), "{oops", said("b", reasoning="hm"), '{"role": "us')))
    code, report = ingested(capsys, file)
    assert (code, report["turns"], report["new_events"], report["unread"]) == (1, 2, 3, 2)
    assert [one["place"] for one in report["refused"]] == [f"{file}:2", f"{file}:4"]
    assert report["dropped"] == {"reasoning": 1}
    assert main(["ingest", str(file)]) == 1
    shown = capsys.readouterr()
    assert f"{file}:2: not JSON" in shown.err
    assert "2 lines or records could not be read\ndropped: 1 reasoning\n" in shown.out


def test_a_malformed_file_stops_nobody_else(ready, tmp_path, capsys):
    """A file of which nothing can be read is named, the other file is published; exit code 1."""
    bad, good = tmp_path / "bad.jsonl", tmp_path / "good.jsonl"
    bad.write_text("{oops\n")
    good.write_text(said("a"))
    assert main(["ingest", str(bad), str(good), "--json"]) == 1
    shown = capsys.readouterr()
    assert f"{bad}:1: not JSON" in shown.err
    report = json.loads(shown.out)
    assert (report["files"], report["new_events"]) == (1, 2)


def test_each_named_speaker_of_a_file_has_memories_of_their_own(ready, tmp_path, capsys):
    """With --user-from-name the turns of one session belong to those who speak in it."""
    file = tmp_path / "group.jsonl"
    lines = [
        said("hi", name="Ann"),
        said("hello", name="Bob"),
        said("nobody"),
        said("bye", name="Ann"),
    ]
    file.write_text("\n".join(lines))
    code, report = ingested(capsys, file, "--user-from-name")
    events = envelopes(ready)
    turns = [
        (one.scope.user, one.event.user) for one in events if isinstance(one.event, TurnCompleted)
    ]
    assert (code, report["sessions"], report["new_events"]) == (0, 3, 7)
    assert sorted(turns) == [("Ann", "bye"), ("Ann", "hi"), ("Bob", "hello"), ("default", "nobody")]
    assert {one.session.id for one in events if isinstance(one.event, SessionStarted)} == {"group"}
    assert ingested(capsys, file, "--user-from-name")[1]["new_events"] == 0
    assert main(["ingest", str(file), "--user-from-name", "--user", "ann"]) == 2


def test_two_people_of_a_long_conversation_have_memories_of_their_own(ready, tmp_path, capsys):
    """With --user-from-name each gets what that person said, in sessions that follow each other."""
    file = tmp_path / "seven.json"
    talk = [{"speaker": "Ann", "text": "one"}, {"speaker": "Bo", "text": "two"}]
    file.write_text(
        json.dumps({"speaker_a": "Ann", "speaker_b": "Bo", "session_1": talk, "session_2": talk})
    )
    assert ingested(capsys, file, "--user-from-name")[0] == 0
    events = envelopes(ready)
    turns = [
        (one.scope.user, one.session.id, one.event.user, one.event.assistant)
        for one in events
        if isinstance(one.event, TurnCompleted)
    ]
    switches = {one.scope.user for one in events if isinstance(one.event, SessionSwitched)}
    assert switches == {"Ann", "Bo"}
    assert sorted(turns) == [
        (name, f"seven:session_{n}", text, "")
        for name, text in (("Ann", "one"), ("Bo", "two"))
        for n in (1, 2)
    ]


def test_a_turn_with_a_large_picture_enters_with_its_words(ready, tmp_path, capsys):
    """G10: the data of a picture is dropped, so that the event fits."""
    file = tmp_path / "picture.jsonl"
    url = "data:image/png;base64," + "A" * 2_000_000
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    file.write_text(json.dumps({"role": "user", "content": parts}))
    code, report = ingested(capsys, file)
    assert (code, report["new_events"]) == (0, 2)
    assert report["dropped"] == {"data of pictures and files": 1}


EXPORTS = Path(__file__).parents[3] / "golden" / "exports"


def test_an_export_that_comes_again_adds_only_what_is_new(ready, tmp_path, capsys):
    """G2: an export is named in the report; packed, again or grown, it brings no turn twice."""
    conversations = json.loads((EXPORTS / "chatgpt.json").read_text())
    alone, whole = tmp_path / "conversations.json", tmp_path / "export.zip"
    alone.write_text(json.dumps(conversations[:1]))
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("conversations.json", json.dumps(conversations))
    code, report = ingested(capsys, alone)
    assert (code, report["formats"], report["turns"]) == (0, {"ChatGPT": 1}, 2)
    code, report = ingested(capsys, whole)
    assert (code, report["turns"], report["known"], report["new_events"]) == (0, 3, 2, 2)
    assert main(["ingest", str(whole), str(alone)]) == 0
    shown = capsys.readouterr().out
    known = "imported 3 sessions, 5 turns from 2 files (ChatGPT): 5 turns known already, "
    assert f"{known}nothing new in the log" in shown


@pytest.mark.parametrize("name", ["claude_ai.json", "claude_code.jsonl", "codex.jsonl"])
def test_an_export_of_any_program_comes_again_without_a_trace(ready, capsys, name):
    """G2: notes of a program are no unread lines, and a second ingest adds nothing."""
    assert ingested(capsys, EXPORTS / name)[0] == 0
    code, report = ingested(capsys, EXPORTS / name)
    assert (code, report["new_events"], report["unread"]) == (0, 0, 0)


def test_a_resumed_transcript_brings_only_what_was_said_since(ready, tmp_path, capsys):
    """G2: Claude Code copies a session under a new id when it is resumed; the copy is known."""
    first = tmp_path / "first.jsonl"
    first.write_text((EXPORTS / "claude_code.jsonl").read_text())
    resumed = tmp_path / "resumed.jsonl"
    old, new = "0b5f7c1e-1111-4222-8333-444455556666", "77777777-1111-4222-8333-444455556666"
    last = {"type": "user", "uuid": "u-3", "parentUuid": "a-5", "sessionId": new,
            "timestamp": "2026-03-02T09:00:00.000Z",
            "message": {"role": "user", "content": "And the anchor light?"}}  # fmt: skip
    resumed.write_text(first.read_text().replace(old, new) + json.dumps(last) + "\n")
    assert ingested(capsys, first)[1]["new_events"] == 3
    code, report = ingested(capsys, resumed)
    assert (code, report["known"], report["new_events"]) == (0, 2, 1)
    assert ingested(capsys, resumed)[1]["new_events"] == 0


def test_a_conversation_that_went_on_from_an_edited_question_adds_the_new_branch(
    ready, tmp_path, capsys
):
    """G2: what was said before the edit stays, and the branch that was shown last is added."""
    conversations = json.loads((EXPORTS / "chatgpt.json").read_text())[:1]
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(conversations))
    assert ingested(capsys, file)[1]["turns"] == 2
    nodes = conversations[0]["mapping"]
    edited = json.loads(json.dumps([nodes["b-3"], nodes["b-4"]]).replace("b-3", "e-3"))
    edited = json.loads(json.dumps(edited).replace("b-4", "e-4"))
    edited[0]["message"]["content"] = {"content_type": "text", "parts": ["Is it too large?"]}
    nodes |= {"e-3": edited[0], "e-4": edited[1]}
    conversations[0]["current_node"] = "e-4"
    file.write_text(json.dumps(conversations))
    code, report = ingested(capsys, file)
    assert (code, report["turns"], report["known"], report["new_events"]) == (0, 2, 1, 1)
