"""``memorybus-hook HOST FOLDER``: a hook of Claude Code or Codex; see docs/frameworks.md.

A host gives JSON on standard input (Codex's ``notify``: as the last argument) and waits. The hook
sends the transcript's new lines to the gateway, and prints what memory has about a prompt. Whatever
goes wrong, the host goes on (G9): the exit code is 0, nothing is printed, and `LOG` has a line.
"""

import http.client
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from memorybus import private
from memorybus.clock import SYSTEM, Clock

from memorybus_console.hooks.transcript import (
    ReadingProgress,
    TranscriptWindow,
    Unusable,
    open_transcript,
    opened,
    read_lines,
)

CONFIG, LOG, SESSIONS = "gateway.json", "hook.log", "sessions"

_GATEWAY_SECONDS = 2.0
"""The most seconds that a host waits for one answer of the gateway."""
_MOST_INPUT = 4 << 20
_MOST_LOG = 1 << 20
_MOST_WINDOWS = 4
"""How many windows of a transcript one hook sends; the next hook sends the rest (G10)."""
_MOST_OTHERS = 8
"""How many other sessions, whose hooks found no gateway, one hook sends (G10)."""
_CURABLE = frozenset((401, 403, 404, 408, 429))
"""Refusals that another key, another release or time changes; others are of what is sent."""
_SLACK_MS = 5_000
"""A first message may be some seconds older than the hook that sees it."""
_IDLE_MS = 3_600_000
"""After so long without a line a session has ended, though no hook said so."""


def main(argv: Sequence[str] | None = None, clock: Clock = SYSTEM) -> int:
    """Run one hook; the exit code is always 0."""
    words = list(sys.argv[1:] if argv is None else argv)
    folder = Path(words[1]) if len(words) > 1 else Path(os.devnull)
    try:
        given = _read_input(words[2:])
        with closing(_Hook(words[0], folder, clock)) as hook:
            if answer := hook.answer(given):
                sys.stdout.write(json.dumps(answer))
    except Exception as error:
        _log(folder, clock, f"{type(error).__name__}: {error}")
    return 0


def _read_input(words: Sequence[str]) -> dict[str, Any]:
    """Return what the host gives; Codex's notification in the words of a hook."""
    given = json.loads(words[-1] if words else sys.stdin.buffer.read(_MOST_INPUT))
    if not isinstance(given, dict):
        raise Unusable("the host gave no object")
    if given.get("type") == "agent-turn-complete":
        return {
            "hook_event_name": "Stop",
            "session_id": given.get("thread-id"),
            "last_assistant_message": given.get("last-assistant-message"),
        }
    return given


def _log(folder: Path, clock: Clock, text: str) -> None:
    with suppress(OSError):
        path = folder / LOG
        if path.exists() and path.stat().st_size > _MOST_LOG:
            path.replace(folder / f"{LOG}.1")
        with open(path, "a", opener=private.opener, encoding="utf-8", errors="replace") as log:
            log.write(f"{clock.now_ms()} {text[:1_000]!r}\n")


class GatewayRefusal(Exception):
    """The gateway refuses a request; the message says why."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.is_lasting = status < 500 and status not in _CURABLE


class _Hook:
    """One run of a hook."""

    def __init__(self, host: str, folder: Path, clock: Clock) -> None:
        config = json.loads((folder / CONFIG).read_bytes())
        self._folder = folder
        self._clock = clock
        self._root = Path(config["transcripts"])
        self._format = host
        self._owner = config["owner"] | {"platform": host}
        self._headers = {"content-type": "application/json"}
        if config["key"]:
            self._headers["authorization"] = f"Bearer {config['key']}"
        self._gateway = http.client.HTTPConnection(
            config["host"], config["port"], timeout=_GATEWAY_SECONDS
        )

    def close(self) -> None:
        self._gateway.close()

    def answer(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        """Do what a step needs; return what the host shall read."""
        event, session = str(given.get("hook_event_name")), str(given.get("session_id"))
        if given.get("agent_id"):  # a sub-agent's step: the session's own transcript has it
            return None
        with opened(self._folder / SESSIONS, session) as progress:
            if progress is not None:
                self._record(progress, event, given)
        if event == "SessionStart":
            self._send_others(session)
        if event != "UserPromptSubmit":
            return None
        prompt = str(given.get("prompt") or "")
        block = self._post(session, "prefetch", query=prompt)["block"] if prompt.strip() else ""
        shown = {"hookEventName": event, "additionalContext": block}
        return {"hookSpecificOutput": shown} if block else None

    def _record(self, progress: ReadingProgress, event: str, given: Mapping[str, Any]) -> None:
        """Send the new lines of a session; its record begins at its first step."""
        path = str(given.get("transcript_path") or progress.path or self._find(progress.session))
        if event == "SessionEnd":
            progress.ended = str(given.get("reason") or "")
        try:
            with self._opened_transcript(path) as file:
                progress.path = path
                if progress.is_new and event in ("SessionStart", "UserPromptSubmit"):
                    progress.begin(file, self._clock.now_ms() - _SLACK_MS)
                progress.save()
                if file is not None:
                    answer = str(given.get("last_assistant_message") or "")
                    self._send(progress, file, _stage_of(event, given), answer)
        except Unusable as error:
            _log(self._folder, self._clock, f"{progress.session}: {error}")

    @contextmanager
    def _opened_transcript(self, path: str) -> Iterator[int | None]:
        """Yield an open transcript; None before a session's first line."""
        try:
            file = open_transcript(path, self._root)
        except FileNotFoundError:
            yield None
            return
        try:
            yield file
        finally:
            os.close(file)

    def _find(self, session: str) -> str:
        """Return the transcript of a Codex thread; there is a folder for each day."""
        days = sorted(self._root.glob("*/*/*"), reverse=True)
        files = (file for day in days for file in day.glob(f"rollout-*-{session}.jsonl"))
        return str(next(files, ""))

    def _send(self, progress: ReadingProgress, file: int, stage: str, answer: str = "") -> None:
        """Send what the gateway lacks; first, unchanged, what it was sent and did not answer."""
        progress.check(file)
        for _ in range(_MOST_WINDOWS):
            again = progress.sent
            lines = read_lines(file, progress.offset, again["position"] if again else 0)
            if not again:
                progress.sent = _request(progress, lines, stage, answer)
            if progress.sent is None:
                return
            progress.save()
            try:
                reply = self._post_lines(progress, progress.text_of(lines), progress.sent)
            except GatewayRefusal as refusal:
                if not refusal.is_lasting:
                    raise
                self._leave_out(progress, lines, refusal)
                continue
            stuck = reply["lines"] == 0 and lines.more
            stage = "closed" if stuck else stage  # a turn that fills the window: its parts are sent
            progress.chain = reply["chain"]
            progress.accept(file, lines.end_of(reply["lines"]))
            progress.save()
            if not (again or lines.more):
                return

    def _post_lines(
        self, progress: ReadingProgress, text: str, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        body = {"chain": progress.chain, "format": self._format, "lines": text, **given}
        return self._post(progress.session, "transcript", **body)

    def _leave_out(
        self, progress: ReadingProgress, lines: TranscriptWindow, why: GatewayRefusal
    ) -> None:
        """Find the first line that the gateway refuses, and leave it out: others wait behind it."""
        text, given = progress.text_of(lines).split("\n"), {"since": progress.since}
        self._post_lines(progress, "", given)  # raises if it refuses the session, not a line
        taken, refused = 0, len(text)
        while refused - taken > 1:
            middle = (taken + refused) // 2
            try:
                self._post_lines(progress, "\n".join(text[:middle]), given)
                taken = middle
            except GatewayRefusal as refusal:
                if not refusal.is_lasting:
                    raise
                refused = middle
        begin = lines.end_of(taken)
        progress.left_out.append(begin)
        progress.save()
        at = f"the line at byte {begin} of {progress.path} is left out"
        warning = f"{progress.session}: {at} ({len(progress.left_out)} so far): {why}"
        _log(self._folder, self._clock, warning)

    def _send_others(self, own: str) -> None:
        """Send what hooks of other sessions could not, and forget sessions without a transcript."""
        sent = 0
        for path in sorted((self._folder / SESSIONS).glob("*.json")):
            if path.stem == own or sent == _MOST_OTHERS:
                continue
            try:
                with opened(path.parent, path.stem) as progress:
                    if progress is not None:
                        sent += self._send_other(progress)
            except (Unusable, GatewayRefusal) as error:
                _log(self._folder, self._clock, f"{path.stem}: {error}")

    def _send_other(self, progress: ReadingProgress) -> bool:
        """Return whether a session had something to send."""
        with self._opened_transcript(progress.path) as file:
            before = self._clock.now_ms() - _IDLE_MS
            if file is None:
                progress.forget(before)
                return False
            waits, idle = progress.waits(file, before)
            if waits:
                self._send(progress, file, "closed" if idle else "open")
            return waits

    def _post(self, session: str, operation: str, **body: Any) -> dict[str, Any]:
        """Ask the gateway.

        Raises:
            GatewayRefusal: it does not do it.
            OSError: it does not answer.
        """
        path = f"/v1/sessions/{session}/{operation}"
        data = json.dumps(self._owner | body, ensure_ascii=False).encode("utf-8", "replace")
        self._gateway.request("POST", path, data, self._headers)
        response = self._gateway.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
        if response.status >= http.client.BAD_REQUEST:
            why = f"{path}: {response.status} {answer.get('detail')}"
            raise GatewayRefusal(why, response.status)
        return answer


def _stage_of(event: str, given: Mapping[str, Any]) -> str:
    """Return what is over: the last turn (``answered``) if it has an answer, all, or neither."""
    if event in ("SessionStart", "PreCompact") and given.get("trigger") != "manual":
        return "open"
    return "closed" if event == "SessionEnd" else "answered"


def _request(
    progress: ReadingProgress, lines: TranscriptWindow, stage: str, answer: str
) -> dict[str, Any] | None:
    """Return what is sent with lines; None if there is nothing to send."""
    request = {"position": lines.end, "since": progress.since}
    if progress.ended is not None and not lines.more:
        return request | {"stage": "closed", "reason": progress.ended}
    if lines.end == progress.offset:
        return None
    whole = stage == "closed" or not lines.more
    return request | {"stage": stage if whole else "open", "answer": answer if whole else ""}
