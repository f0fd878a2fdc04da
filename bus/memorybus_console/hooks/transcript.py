"""The new lines of a host's transcript, and how far the gateway has them.

A session has a file in the hooks' private folder. Before lines are sent it notes which, and with
what: after a kill the same lines are sent in the same way, so that they become the same events.
"""

import fcntl
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from memorybus import private

WINDOW_BYTES = 4 << 20
"""The most bytes that are read at once; of a longer turn the parts become turns (G10)."""

_MOST_SKIPPED = 512 << 20
"""The most bytes of a line that are passed over; behind a longer one nothing is read (G10)."""

_MARK_BYTES = 1_024
_AGAIN_MS = 12 * 3_600_000
"""What is read again is told apart by event ids, which the log remembers for a day."""
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class Unusable(Exception):
    """A hook's input or a transcript that must not be used; the message says why."""


def open_transcript(path: str, root: Path) -> int:
    """Open a transcript for reading.

    Args:
        path: what the host gave; hostile.
        root: the folder of the host's transcripts.

    Raises:
        Unusable: the file is elsewhere, or no file of this user.
        OSError: there is no such file.
    """
    real = os.path.realpath(path)
    if not real.startswith(os.path.realpath(root) + os.sep) or not real.endswith(".jsonl"):
        raise Unusable("the transcript is not in the host's folder of transcripts")
    file = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
        os.close(file)
        raise Unusable("the transcript is no file of this user")
    return file


class ReadingProgress:
    """How far the gateway has the transcript of one session.

    Attributes:
        session: the session.
        is_new: whether this is its first hook.
        path: the transcript.
        offset: how many of its bytes the gateway has.
        since: what was said before is another session's, milliseconds.
        sent: what was sent without an answer: ``position``, where it ends, and the other fields.
        ended: why the session ended, until the gateway knows it.
        chain: the turns that the gateway has published, for the next request.
        left_out: where lines begin that the gateway refuses, bytes.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.session = file.stem
        self.path = ""
        self.offset = self._mark = self.since = 0
        self.sent: dict[str, Any] | None = None
        self.ended: str | None = None
        self.chain: list[Any] = []
        self.left_out: list[int] = []
        self.is_new = not file.exists()
        if not self.is_new:
            self._load()

    def _load(self) -> None:
        try:
            kept = json.loads(self._file.read_bytes())
            self.path, self.offset, self.since = kept["path"], kept["offset"], kept["since"]
            self.sent, self.ended, self._mark = kept["sent"], kept["ended"], kept["mark"]
            self.chain, self.left_out = kept.get("chain", []), kept.get("left_out", [])
        except (ValueError, KeyError, TypeError) as error:
            raise Unusable(f"{self._file} is damaged, delete it: {error!r}") from error

    def save(self) -> None:
        """Write the file whole, or not at all."""
        kept = {"path": self.path, "offset": self.offset, "mark": self._mark, "since": self.since}
        kept |= {"sent": self.sent, "ended": self.ended}
        kept |= {"chain": self.chain, "left_out": self.left_out}
        new = self._file.with_suffix(".new")
        private.write(new, json.dumps(kept).encode())
        new.replace(self._file)

    def begin(self, file: int | None, since: int) -> None:
        """Leave out what was said before, and what the transcript holds already."""
        self.since = since
        if file is not None:
            self._move(file, os.fstat(file).st_size)

    def check(self, file: int) -> None:
        """Begin again if the transcript is not the one that was read: truncated, or rewritten."""
        if self._mark != _mark_at(file, self.offset):
            self.sent, self.left_out, self.chain = None, [], []
            self.since = max(self.since, self._file.stat().st_mtime_ns // 1_000_000 - _AGAIN_MS)
            self._move(file, 0)

    def accept(self, file: int, end: int) -> None:
        """Note that the gateway has the lines up to an offset, and what was sent with them."""
        if self.sent and "reason" in self.sent:
            self.ended = None
        self.sent = None
        self._move(file, end)

    def text_of(self, lines: "TranscriptWindow") -> str:
        """Return lines as they are sent: one that is left out is empty."""
        at, sent = lines.end - len(lines.data), []
        for line in lines.data.split(b"\n"):
            sent.append(b"" if at in self.left_out else line)
            at += len(line) + 1
        return b"\n".join(sent).decode("utf-8", "replace")

    def waits(self, file: int, before: int) -> tuple[bool, bool]:
        """Return whether the gateway lacks something, and whether nothing is written any more.

        Args:
            file: the transcript.
            before: a transcript without a line since then is idle, milliseconds.
        """
        status = os.fstat(file)
        idle = status.st_mtime_ns < before * 1_000_000
        unanswered = self.sent is not None or self.ended is not None
        return unanswered or (idle and status.st_size > self.offset), idle

    def forget(self, before: int) -> None:
        """Remove what is kept of a session that has no transcript, if it is from before a time."""
        if self._file.stat().st_mtime_ns < before * 1_000_000:
            self._file.unlink()
            self._file.with_suffix(".lock").unlink()

    def _move(self, file: int, offset: int) -> None:
        self.offset, self._mark = offset, _mark_at(file, offset)


def _mark_at(file: int, offset: int) -> int:
    """Return what stands for the bytes before an offset."""
    begin = max(0, offset - _MARK_BYTES)
    data = os.pread(file, offset - begin, begin)
    return zlib.crc32(data) if len(data) == offset - begin else -1


class TranscriptWindow(NamedTuple):
    """Whole lines of a transcript.

    Attributes:
        data: the lines; nothing for one that is too long to be read.
        end: where they end.
        more: whether others follow.
    """

    data: bytes
    end: int
    more: bool

    def end_of(self, count: int) -> int:
        """Return where the first so many lines end."""
        rest = self.data.split(b"\n", count)[count:]
        return self.end - len(rest[0]) if rest else self.end


def read_lines(file: int, offset: int, until: int = 0) -> TranscriptWindow:
    """Return the lines from an offset on.

    Args:
        file: the transcript.
        offset: where the first line begins.
        until: where the last line ends; as many as fit in the window if 0.
    """
    size = until or os.fstat(file).st_size
    data = os.pread(file, min(WINDOW_BYTES, size - offset), offset) if size > offset else b""
    more = offset + len(data) < size
    lines = data[: data.rfind(b"\n") + 1]
    end = offset + len(lines) if lines or not more else _end_of_line(file, offset)
    return TranscriptWindow(lines, end, more and end > offset)


def _end_of_line(file: int, offset: int) -> int:
    """Return where a line ends that is longer than the window; its begin if it has no end yet."""
    for at in range(offset, offset + _MOST_SKIPPED, WINDOW_BYTES):
        data = os.pread(file, WINDOW_BYTES, at)
        if b"\n" in data:
            return at + data.index(b"\n") + 1
        if not data:
            break
    return offset


@contextmanager
def opened(folder: Path, session: str) -> Iterator[ReadingProgress | None]:
    """Yield the progress of a session; None if another process has it, which is not waited for.

    Raises:
        Unusable: the session's name is none.
    """
    if not _SESSION.fullmatch(session):
        raise Unusable("the session's id has other characters than letters, digits, - and _")
    with open(folder / f"{session}.lock", "ab", opener=private.opener) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield ReadingProgress(folder / f"{session}.json")
