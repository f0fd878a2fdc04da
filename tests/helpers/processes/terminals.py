"""A command at a terminal of its own, as a person sees it."""

import os
import pty
import subprocess
import termios
from pathlib import Path

from helpers.processes.waiting import wait_until


class Terminal:
    """The command at a terminal: what it shows, and what is typed."""

    def __init__(self, words: list[str], environ: dict[str, str], place: Path) -> None:
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        self.seen = ""
        self._from = 0
        self.process = subprocess.Popen(
            words,
            env=environ,
            cwd=place,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def _shows(self, text: str) -> bool:
        self._take()
        return text in self.seen[self._from :]

    def _take(self) -> None:
        try:
            while chunk := os.read(self._ours, 65_536):
                self.seen += chunk.decode("utf-8", "replace")
        except (BlockingIOError, OSError):
            return

    def see(self, text: str) -> None:
        """Wait until a text is shown, behind the last one that was waited for."""
        wait_until(lambda: self._shows(text), f"the terminal shows {text!r}", timeout=30)
        self._from = self.seen.index(text, self._from) + len(text)

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._ours, f"{line}\n".encode())

    def type_secret(self, line: str) -> None:
        """Type a line that must not be shown."""
        assert not termios.tcgetattr(self._ours)[3] & termios.ECHO, "the echo is on"
        self.type(line)

    def end(self) -> int:
        """Wait for the end; return the exit code."""
        wait_until(self._has_ended, "the command has ended", timeout=30)
        return self.process.wait()

    def _has_ended(self) -> bool:
        self._take()
        return self.process.poll() is not None

    def close(self) -> None:
        """Let go of the terminal."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)
