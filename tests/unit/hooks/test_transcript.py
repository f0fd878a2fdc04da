"""How a hook reads a transcript: each line once, and no file but the host's own."""

import json
import os

import pytest
from memorybus_console.hooks import transcript
from memorybus_console.hooks.transcript import Unusable, open_transcript, opened, read_lines


@pytest.fixture(name="root")
def _root(tmp_path):
    root = tmp_path / "projects"
    (root / "-home-ann").mkdir(parents=True)
    return root


@pytest.fixture(name="sessions")
def _sessions(tmp_path):
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    return sessions


def opened_file(path):
    """Open a file as a hook has it."""
    return os.open(path, os.O_RDONLY)


@pytest.mark.parametrize("made", ["outside", "link out", "climb", "pipe", "folder", "ending"])
def test_only_files_of_the_hosts_folder_are_read(root, tmp_path, made):
    """A path that leads elsewhere, or to what is no file, is refused and never waited for."""
    outside = tmp_path / "secret.jsonl"
    outside.write_text("{}\n")
    inner = root / "-home-ann" / "s.jsonl"
    path = str(inner)
    match made:
        case "outside":
            path = str(outside)
        case "link out":
            inner.symlink_to(outside)
        case "climb":
            path = f"{root}/-home-ann/../../secret.jsonl"
        case "pipe":
            os.mkfifo(inner)
        case "folder":
            inner.mkdir()
        case "ending":
            path = str(root / "-home-ann" / "id_rsa")
            (root / "-home-ann" / "id_rsa").write_text("x")
    with pytest.raises(Unusable):
        open_transcript(path, root)


def test_a_root_behind_a_link_is_the_same_folder(root, tmp_path):
    """People keep their settings behind links: the folder counts, not its name."""
    (root / "-home-ann" / "s.jsonl").write_text("{}\n")
    (tmp_path / "link").symlink_to(root)
    os.close(open_transcript(f"{tmp_path}/link/-home-ann/s.jsonl", tmp_path / "link"))


@pytest.mark.parametrize(
    ("text", "offset", "until", "data", "end", "more"),
    [
        pytest.param(b"", 0, 0, b"", 0, False, id="empty"),
        pytest.param(b"ab\ncd\n", 0, 0, b"ab\ncd\n", 6, False, id="all"),
        pytest.param(b"ab\ncd", 0, 0, b"ab\n", 3, False, id="a line that is being written"),
        pytest.param(b"ab", 0, 0, b"", 0, False, id="its first bytes"),
        pytest.param(b"ab\ncd\n", 3, 0, b"cd\n", 6, False, id="from an offset"),
        pytest.param(b"ab\ncd\n", 0, 3, b"ab\n", 3, False, id="to an end"),
        pytest.param(b"ab\ncd\nefghi\n", 0, 0, b"ab\ncd\n", 6, True, id="a full window"),
        pytest.param(b"a" * 20 + b"\nb\n", 0, 0, b"", 21, True, id="a line longer than the window"),
        pytest.param(b"a" * 20, 0, 0, b"", 0, False, id="such a line that is being written"),
        pytest.param(b"a\n", 9, 0, b"", 9, False, id="behind the end"),
    ],
)
def test_whole_lines_are_read(tmp_path, monkeypatch, text, offset, until, data, end, more):
    """A window holds whole lines only, and what is too long is passed over."""
    monkeypatch.setattr(transcript, "WINDOW_BYTES", 10)
    path = tmp_path / "t.jsonl"
    path.write_bytes(text)
    file = opened_file(path)
    assert read_lines(file, offset, until) == (data, end, more)
    os.close(file)


def test_lines_are_counted_in_bytes(tmp_path):
    """The gateway counts lines, and the hook knows where each ends."""
    path = tmp_path / "t.jsonl"
    path.write_text("ä\nbc\nd\n")
    file = opened_file(path)
    lines = read_lines(file, 0)
    assert [lines.end_of(count) for count in range(4)] == [0, 3, 6, 8]
    os.close(file)


@pytest.mark.parametrize(
    ("after", "offset"),
    [
        pytest.param(b'{"a": 1}\n{"b": 2}\n', 9, id="grown"),
        pytest.param(b"", 0, id="truncated"),
        pytest.param(b'{"z": 1}\n{"b": 2}\n', 0, id="rewritten"),
    ],
)
def test_a_transcript_that_is_another_one_is_read_again(sessions, tmp_path, after, offset):
    """What was read goes on where it stopped, unless the bytes before are other ones."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a": 1}\n')
    file = opened_file(path)
    with opened(sessions, "s-1") as progress:
        progress.accept(file, 9)
        progress.save()
    path.write_bytes(after)
    with opened(sessions, "s-1") as progress:
        progress.check(file)
        assert progress.offset == offset
    os.close(file)


def test_a_session_is_read_by_one_process_at_a_time(sessions):
    """A second hook of the session does not wait, and another session's is free."""
    with (
        opened(sessions, "s-1") as first,
        opened(sessions, "s-1") as second,
        opened(sessions, "s-2") as other,
    ):
        assert (first is None, second is None, other is None) == (False, True, False)


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "a\n", "x" * 101, ".hidden"])
def test_a_sessions_name_is_no_path(sessions, name):
    """The host's input names no file outside of the folder."""
    with pytest.raises(Unusable), opened(sessions, name):
        pass
    assert list(sessions.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"path": "x"}', "null"])
def test_a_damaged_file_of_progress_is_named(sessions, text):
    """What is kept of a session is never guessed."""
    (sessions / "s-1.json").write_text(text)
    with pytest.raises(Unusable, match="is damaged, delete it"), opened(sessions, "s-1"):
        pass


def test_what_is_kept_is_private(sessions):
    """Only their user can read the files of a session."""
    with opened(sessions, "s-1") as progress:
        progress.save()
    assert {path.stat().st_mode & 0o777 for path in sessions.iterdir()} == {0o600}
    assert json.loads((sessions / "s-1.json").read_text())["offset"] == 0
