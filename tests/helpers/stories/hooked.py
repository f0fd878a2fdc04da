"""A host with hooks, as Claude Code and Codex start them: a process for each step."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from memorybus import private

PROGRAM = "import sys; from memorybus_console.hooks.entry import main; sys.exit(main())"
KILLED = (
    "import os; from memorybus_console.hooks.transcript import ReadingProgress; "
    "ReadingProgress.accept = lambda *_: os.kill(os.getpid(), 9); "
)
"""Makes a hook die after the gateway's answer, before it is noted."""


class HookedHost:
    """A host on this machine.

    Attributes:
        folder: the folder of its hooks.
        transcripts: where its transcripts are.
    """

    def __init__(self, folder: Path, address: str, host: str = "claude-code", **given: Any) -> None:
        self.folder = folder / "hooks"
        self.transcripts = folder / "transcripts"
        self.host = host
        self.transcripts.mkdir(parents=True, exist_ok=True)
        private.directory(self.folder / "sessions")
        self.connect(address, **given)

    def connect(self, address: str, **given: Any) -> None:
        """Name the gateway, and whose memory the hooks use."""
        name, _, port = address.rpartition(":")
        config = {"host": name, "port": int(port), "key": "", "owner": {"user": "ann"}} | given
        config["transcripts"] = str(self.transcripts)
        (self.folder / "gateway.json").write_text(json.dumps(config))

    def transcript(self, session: str) -> Path:
        """Return a session's transcript."""
        return self.transcripts / f"{session}.jsonl"

    def command(self, *words: str, before: str = "") -> list[str]:
        """Return the command of a hook."""
        return [sys.executable, "-c", before + PROGRAM, self.host, str(self.folder), *words]

    def step(self, event: str, session: str = "s-1", *, before: str = "", **given: Any) -> str:
        """Run the hook of a step; return what it prints. It may not fail, but if it is killed."""
        path = str(self.transcript(session))
        told = {"session_id": session, "transcript_path": path, "hook_event_name": event} | given
        done = subprocess.run(
            self.command(before=before),
            input=json.dumps(told).encode(),
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) in ((0, b""), (-9, b"")), done.stderr
        assert done.returncode == 0 or before
        return done.stdout.decode()

    @property
    def log(self) -> str:
        """What went wrong."""
        log = self.folder / "hook.log"
        return log.read_text() if log.exists() else ""


def context(printed: str) -> str:
    """Return what a hook adds to a prompt; "" if it printed nothing."""
    return json.loads(printed)["hookSpecificOutput"]["additionalContext"] if printed else ""
