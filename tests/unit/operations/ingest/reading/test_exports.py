"""Exports and transcripts of real programs: files after their formats, with invented words."""

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from memorybus_console.operations.ingest.reading import json_files
from memorybus_console.operations.ingest.reading.model import Transcript, TranscriptError
from memorybus_console.operations.ingest.reading.transcripts import (
    parse_transcript,
    read_transcript,
)

EXPORTS = Path(__file__).parents[4] / "golden" / "exports"
KAYAK = [
    ("My kayak leaks at the skeg.", "Seal it with butyl tape."),
    ("[attached: hull.txt]", "A hull of 4.2 m needs two rolls."),
]
BEES = [
    ("How do bees keep warm?", "They form a cluster and shiver."),
    ("Is this hive too small?", "It has room for eight frames."),
]


def sides(transcript: Transcript) -> list[list[tuple[str, str]]]:
    """Return the two sides of each turn, by session."""
    return [[(turn.user, turn.assistant) for turn in one.turns] for one in transcript.conversations]


@pytest.mark.parametrize(
    ("file", "name", "titles", "expected"),
    [
        ("chatgpt.json", "ChatGPT", ["Bees in winter", ""],
         [BEES, [("Name a tuber.", "The oca.")]]),
        ("claude_ai.json", "claude.ai", ["Kayak repair", ""],
         [KAYAK, [("Which oil for teak?", "Linseed oil.")]]),
        ("claude_code.jsonl", "Claude Code", ["Mast light wiring"],
         [[("Why is the mast light dark?", "I look at the fuse.\n\nThe fuse is blown."),
           ("Replace it, please.", "Replaced: 5 A.")]]),
        ("codex.jsonl", "Codex", [""],
         [[("How hot is the oven?", "It is at 230 degrees."),
           ("Cool it down.", "It cools to 90.")]]),
        ("codex_2025.jsonl", "Codex", [""], [[("Which yeast?", "A wild one.")]]),
        ("sharegpt.json", "ShareGPT", ["", ""],
         [[("Who tuned the organ?", "Frau Lindt did."), ("When?", "In spring.")],
          [("Is it loud?", "Quite.")]]),
    ],
)  # fmt: skip
def test_an_export_is_recognised_and_read(file, name, titles, expected):
    """Of each program only what a person and a model said is read, and every line is understood."""
    transcript = read_transcript(EXPORTS / file)

    assert transcript.formats == (name,)
    assert sides(transcript) == expected
    assert [one.title for one in transcript.conversations] == titles
    assert (transcript.left_out.unread, transcript.left_out.named) == (0, [])
    kept = [turn.messages for one in transcript.conversations for turn in one.turns]
    assert "SECRET THOUGHT" not in json.dumps(kept)


def test_messages_without_a_time_have_that_of_their_conversation():
    """ChatGPT gives some messages no time; those of a conversation without any have its own."""
    _, untimed = read_transcript(EXPORTS / "chatgpt.json").conversations

    assert [turn.at for turn in untimed.turns] == [untimed.at] == [1_767_266_600_250]


@pytest.mark.parametrize("file", ["chatgpt.json", "claude_ai.json"])
def test_a_tree_without_its_leaf_is_read_to_its_newest_message(file):
    """An answer that was generated again is left out also where no field names the last message."""
    values = json.loads((EXPORTS / file).read_text())
    first = values[0] | {"current_node": None}
    mapping = first.get("mapping")
    if mapping:
        first["mapping"] = dict(sorted(mapping.items(), reverse=True))
    transcript = parse_transcript(json.dumps([first]).encode(), "x.json", "x")

    assert sides(transcript) in ([BEES], [KAYAK])


def test_a_transcript_without_turns_is_no_error():
    """A file of Claude Code that has only a summary is read, and there is nothing to publish."""
    line = {"type": "summary", "summary": "Ferries", "leafUuid": "u-1"}
    transcript = parse_transcript(json.dumps(line).encode(), "s.jsonl", "s")

    assert (transcript.formats, transcript.conversations) == (("Claude Code",), ())
    assert transcript.left_out.dropped == {"summaries": 1}


def test_a_sub_agent_of_codex_says_nothing_to_the_person():
    """What one agent tells another is left out, and counted."""
    lines = [json.loads(line) for line in (EXPORTS / "codex.jsonl").read_text().splitlines()]
    lines[0]["payload"]["source"] = {"subagent": {"other": "review"}}
    data = "\n".join(map(json.dumps, lines)).encode()
    transcript = parse_transcript(data, "c.jsonl", "c")

    assert transcript.conversations == ()
    assert transcript.left_out.dropped["messages of sub-agents"] == 8


def packed(files: dict[str, Any], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a ZIP archive of files by name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize("file", ["chatgpt.json", "claude_ai.json"])
def test_a_zip_archive_gives_what_its_conversations_give(file):
    """The archive as it was downloaded is opened; files beside the conversations are not read."""
    whole = (EXPORTS / file).read_bytes()
    others = {"user.json": '{"email": "mo@example.org"}', "users.json": "[]", "chat.html": "<p>"}
    alone = parse_transcript(packed({"conversations.json": whole} | others), "e.zip", "e")
    first, second, *rest = json.loads(whole)
    split = {
        "export/conversations-000.json": json.dumps([first]),
        "export/conversations-001.json": json.dumps([second, *rest]),
    }
    parts = parse_transcript(packed(split), "e.zip", "e")

    assert alone.conversations == parts.conversations
    assert alone.conversations == read_transcript(EXPORTS / file).conversations


def test_an_archive_of_transcripts_of_several_programs_is_read():
    """Each JSON file of an archive is read by its own format, whatever path its name looks like."""
    files = {
        "../../etc/codex.jsonl": (EXPORTS / "codex.jsonl").read_bytes(),
        "/a/sharegpt.json": (EXPORTS / "sharegpt.json").read_bytes(),
        "__MACOSX/._codex.jsonl": b"\0\0",
    }
    transcript = parse_transcript(packed(files), "mixed.zip", "mixed")

    assert transcript.formats == ("Codex", "ShareGPT")
    names = [one.session for one in transcript.conversations]
    assert names[1:] == ["identity_0", "mixed:sharegpt:2"]


def test_files_of_one_name_in_an_archive_are_sessions_of_their_own():
    """Turns that name no session never count as those of another folder's file."""
    talk = [{"role": "user", "content": "hello there"}, {"role": "assistant", "content": "hi"}]
    files = {f"{folder}/chat.json": json.dumps(talk) for folder in "abc"}
    transcript = parse_transcript(packed(files), "x.zip", "x")
    assert [one.session for one in transcript.conversations] == ["x:chat", "x:chat-2", "x:chat-3"]


@pytest.mark.parametrize(
    "line",
    [
        {"record_type": "state", "payload": 1},
        {"record_type": "state", "type": "session_meta", "payload": 1},
        {"type": "session_meta", "payload": {"id": 7}},
    ],
)
def test_an_odd_line_of_codex_stops_nothing(line):
    """What is in the file is hostile: a session line without a session is only a line."""
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hey"}]}
    lines = (line, {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": said})
    data = "\n".join(map(json.dumps, lines)).encode()
    transcript = parse_transcript(data, "rollout.jsonl", "rollout")
    assert transcript.formats == ("Codex",)


def damaged(data: bytes) -> bytes:
    """Return an archive in which bytes of the content are others."""
    at = data.index(b"conversations.json") + 60
    return data[:at] + bytes(byte ^ 0xFF for byte in data[at : at + 40]) + data[at + 40 :]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (packed({"word/document.xml": "<w/>"}), "without a JSON file; it has 'word/document.xml'"),
        (packed({"a.json": b" " * (8 << 20)}), "too densely"),
        (packed({"a.json": gzip.compress(b"[]")}), "a gzip file in a ZIP archive"),
        (packed({"a.json": "[]"})[:-30], "the ZIP archive is damaged"),
        (damaged(packed({"conversations.json": json.dumps(list(range(999)))})), "damaged"),
    ],
    ids=["document", "bomb", "gzip", "torn", "damaged"],
)
def test_an_archive_that_cannot_be_opened_is_refused(data, complaint):
    """G10: a bomb, a torn archive and a document are refused with the reason."""
    with pytest.raises(TranscriptError, match=complaint):
        parse_transcript(data, "x.zip", "x")


def test_an_archive_is_unpacked_up_to_a_bound(monkeypatch):
    """G10: the sizes of all files that would be read count together."""
    monkeypatch.setattr(json_files, "LARGEST_UNPACKED", 1 << 20)
    half = json.dumps([{"role": "user", "content": "x" * 700_000}])
    data = packed({"a.json": half, "b.json": half}, zipfile.ZIP_STORED)
    with pytest.raises(TranscriptError, match="unpacks to 1 MiB in 2 files"):
        parse_transcript(data, "x.zip", "x")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"%PDF-1.7\n...", "a PDF document"),
        (b"<!DOCTYPE html><html>", "a web page; name the export's ZIP or its JSON file"),
        (b"SQLite format 3\0...", "an SQLite database"),
        (b"Dear diary,\n", "text without JSON"),
        (b"", "an empty file"),
        (b'{"agents": [], "blocks": []}', "an agent file of Letta; give --from letta"),
        (b'{"results": [{"memory": "x"}]}', "memories of Mem0; give --from mem0"),
        (b'{"display": "hi", "project": "/x", "timestamp": 1}', "prompts without answers"),
        (b'{"session_id": "s", "ts": 1, "text": "hi"}', "prompts without answers"),
        (b'{"colour": 1, "size": 2}', "JSON with the fields 'colour', 'size'"),
        (b"[1, 2]", "JSON without objects"),
    ],
)
def test_an_unknown_file_is_named_for_what_it_looks_like(data, kind):
    """A file without a conversation is refused with what it is, and with what is read."""
    with pytest.raises(TranscriptError) as caught:
        parse_transcript(data, "x", "x")

    assert f"the file looks like {kind}" in str(caught.value)
    assert "memorybus reads ChatGPT and claude.ai exports (ZIP or JSON)" in str(caught.value)
