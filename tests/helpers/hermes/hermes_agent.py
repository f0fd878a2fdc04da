"""The real Hermes in child processes: its home, its environment, what it did."""

import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from memorybus.clock import SYSTEM

from helpers.processes.processes import MARK
from helpers.processes.waiting import wait_until

ROOT = Path(__file__).parents[3]
VENV = ROOT / os.environ.get("HERMES_VENV", ".hermes-venv-0.22.2")
PYTHON = VENV / "bin" / "python"
HAS_HOLOGRAPHIC = any(VENV.glob("lib/python3*/site-packages/plugins/memory/holographic"))
"""Whether this release has that plugin; later ones take it from a catalog."""

LONG_WORDS = "and the timetable of the ferry changes with the tide, as everybody knows. " * 30
"""Hermes refuses a compression that would not make a conversation shorter."""

_PATH = Path(__file__).parents[1] / "hermes_path"
_CLOSED = "http://127.0.0.1:9"
"""A proxy that nobody serves: whatever honours proxies goes nowhere."""
_TURN_SECONDS = 120.0


class Hook(msgspec.Struct, frozen=True):
    """One call of the memory provider.

    Attributes:
        hook: which.
        ms: how long it took.
        thread: on which it was called.
        args: with what.
        stood: how long the whole process stood still meanwhile.
    """

    hook: str
    ms: float
    thread: str
    args: str
    stood: float = 0.0

    @property
    def own_ms(self) -> float:
        """How long it took by its own doing: work, or waiting for something."""
        return self.ms - self.stood


class Home:
    """One HERMES_HOME, and the surroundings of the processes that use it.

    Attributes:
        path: the directory.
        config: what is in config.yaml; `write_config` after a change.
    """

    def __init__(self, path: Path, model_url: str, mark: str, env: Mapping[str, str]) -> None:
        """Make the directory with a configuration for the scripted model.

        Args:
            path: is made.
            model_url: the scripted model's.
            mark: tells this test's processes from all others.
            env: what the processes get besides (``MEMORYBUS_…``).
        """
        self.path = path
        self.model_url = model_url
        self._mark = mark
        self._env = dict(env)
        (path / "cwd").mkdir(parents=True)
        self.config: dict[str, Any] = {
            "model": {
                "default": "scripted",
                "provider": "custom",
                "base_url": model_url,
                "api_key": "dummy",
                "context_length": 200_000,
            },
            "memory": {"memory_enabled": True, "user_profile_enabled": True},
            "agent": {"environment_probe": False},  # asks pip for seconds, and is not our subject
            "auxiliary": {"title_generation": {"enabled": False}},
            "approvals": {"destructive_slash_confirm": False},
            "security": {"allow_lazy_installs": False},
            # Else 0.22 asks at a terminal, before the first prompt.
            "telemetry": {"shared_metrics": {"enabled": False, "send": False, "offer_version": 2}},
        }
        self.write_config()

    def write_config(self) -> None:
        (self.path / "config.yaml").write_text(yaml.safe_dump(self.config))

    def unset(self, name: str) -> None:
        """Leave a variable out of the environment, so that the home's settings decide."""
        del self._env[name]

    def environment(self) -> dict[str, str]:
        """Return the whole environment of a Hermes process: nothing of the person's own Hermes."""
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR", "CI")}
        proxies = {f"{kind}_proxy": _CLOSED for kind in ("http", "https", "all")}
        return {
            **kept,
            **proxies,
            **{name.upper(): value for name, value in proxies.items()},
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            "HOME": str(self.path),
            "HERMES_HOME": str(self.path),
            "HERMES_DISABLE_LAZY_INSTALLS": "1",
            "HERMES_TEST_OUTSIDE": str(self.path / "outside.txt"),
            "HERMES_TEST_HOOKS": str(self.path / "hooks.jsonl"),
            "PYTHONPATH": str(_PATH),
            "PYTHONUNBUFFERED": "1",
            "TERM": "xterm",
            MARK: self._mark,
            **self._env,
        }

    @property
    def outside(self) -> str:
        """The hosts that somebody wanted to reach, one a line; "" is as it should be."""
        path = self.path / "outside.txt"
        return path.read_text() if path.exists() else ""

    def hooks(self, *names: str) -> list[Hook]:
        """Return the provider's calls in the order in which they ended; of some hooks only."""
        path = self.path / "hooks.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        found = [msgspec.json.decode(line, type=Hook) for line in lines]
        return [hook for hook in found if not names or hook.hook in names]

    def log(self) -> str:
        """Return what Hermes wrote to its own log files."""
        files = sorted((self.path / "logs").glob("*.log"))
        return "\n".join(file.read_text(errors="replace") for file in files)

    def run(
        self, *words: str, timeout: float = _TURN_SECONDS
    ) -> "subprocess.CompletedProcess[str]":
        """Run the ``hermes`` command itself to its end."""
        return subprocess.run(
            [PYTHON, VENV / "bin" / "hermes", *words],
            env=self.environment(),
            cwd=self.path / "cwd",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


class Hermes:
    """One process that runs the real agent and does what it is told.

    Attributes:
        session: the id of the session at the prompt, after the last command.
    """

    def __init__(self, home: Home, **options: Any) -> None:
        self.home = home
        self.session = ""
        self.log_path = home.path / "puppet.log"
        reading, writing = os.pipe()
        told = {"url": home.model_url, "answers": writing, **options}
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [PYTHON, _PATH / "puppet.py", json.dumps(told)],
                env=home.environment(),
                cwd=home.path / "cwd",
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(writing,),
                start_new_session=True,
            )
        os.close(writing)
        self._answers = os.fdopen(reading, "r")
        self.pid = self._process.pid

    def do(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Do one thing (a method of the puppet) and return what came of it."""
        self.begin(command, **arguments)
        return self.answer()

    def begin(self, command: str, **arguments: Any) -> None:
        """Begin one thing; `answer` waits for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": command, **arguments}).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Wait for what came of what was begun."""
        line = self._answers.readline()
        assert line, f"Hermes ended with {self._process.wait(10)}: {self.said()}"
        answer: dict[str, Any] = json.loads(line)
        assert "error" not in answer, f"{answer['error']}\n{self.said()}"
        self.session = answer.get("session", self.session)
        return answer

    def chat(self, text: str) -> dict[str, Any]:
        """One turn at the prompt; it must be answered."""
        answer = self.do("chat", text=text)
        assert answer["answer"], f"no answer to {text!r}: {self.said()}"
        return answer

    def slash(self, text: str) -> dict[str, Any]:
        """One slash command at the prompt."""
        return self.do("slash", text=text)

    def compressed_after(self, said: Sequence[str]) -> tuple[str, str]:
        """Have turns, compress into another session, go on there; return both sessions' ids."""
        for text in said:
            self.chat(text)
        old = self.session
        self.slash("/compress")
        new = self.session
        assert new != old, self.said()
        self.chat("after the compression")
        return old, new

    def fork(self) -> int:
        """Let a child of it take the next commands, which saves seconds of imports; its id.

        When the child leaves or is killed, `answer` tells its exit code and the parent goes on.
        """
        return int(self.do("fork")["pid"])

    def leave_fork(self) -> float:
        """Let the child leave as the command line does; return the seconds until it was gone.

        A child of a fork of Hermes 0.22 may crash in the interpreter's last steps, with memory and
        without; ``test_one_question_and_its_end_are_sent`` has processes that are no forks.
        """
        begun = SYSTEM.monotonic()
        left = self.do("leave")
        assert left["ended"] in (0, -signal.SIGSEGV), f"{left}: {self.said()}"
        return SYSTEM.monotonic() - begun

    def answered(self, seconds: float) -> bool:
        """Wait so long at most for what was begun; say whether `answer` has it."""
        return bool(select.select([self._answers], [], [], max(0.0, seconds))[0])

    def kill_fork(self, pid: int) -> list[dict[str, Any]]:
        """SIGKILL the child; return what it had answered and nobody had read."""
        os.kill(pid, signal.SIGKILL)
        found = []
        while "ended" not in (answer := self.answer()):
            found.append(answer)
        return found

    def leave(self) -> float:
        """Leave as the command line does; return the seconds until the process was gone."""
        begun = SYSTEM.monotonic()
        self.begin("leave")
        wait_until(lambda: not self.alive, f"Hermes ends: {self.said()}", 90)
        took = SYSTEM.monotonic() - begun
        self._close()
        return took

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self._process.kill()
        self._process.wait(10)
        self._close()

    def _close(self) -> None:
        self._answers.close()
        if self._process.stdin is not None:
            self._process.stdin.close()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def said(self) -> str:
        """Return the end of what it printed."""
        return self.log_path.read_text(errors="replace")[-4000:]
