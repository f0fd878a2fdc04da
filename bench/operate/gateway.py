"""What the gateway adds to a warm prefetch, and how many events one client publishes by it.

The server is a process of its own, as people start it, and the client keeps one connection.
``gateway_prefetch_p50_ms`` is the median of a request less the median of `Session.prefetch` in this
process, for the same warm block. ``hook_ms`` is the median of the prompt hook of Claude Code, a
process that reads a turn of its transcript and brings the block; ``hook_over_python`` that median
over the one of a Python that does nothing.
"""

import http.client
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from gauge import US, Figures, Size, p50, p99, timed
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import to_environ
from recall.prefetch import PROMPT, warm_session
from stage import ROOT, Stage, wait_for

_BATCH = 100
_HOOKS = 21
_JSON = {"content-type": "application/json"}


def measure(size: Size) -> Figures:
    """Return milliseconds that a warm prefetch takes longer, and events that are published."""
    with Stage() as stage, MemoryBus.connect(stage.settings) as bus, served(stage) as address:
        session = warm_session(stage, bus)
        body = json.dumps({"query": PROMPT}).encode()
        path = f"/v1/sessions/{session.id}/prefetch"
        with closing(http.client.HTTPConnection(address)) as connection:
            wait_for("the warm block", lambda: _ask(connection, path, body)["block"] != "")
            direct = timed(session.prefetch, [PROMPT] * size.calls)
            asked = timed(lambda _: _ask(connection, path, body), [None] * size.calls)
            rate = _publish(connection, size.calls)
        hook, bare = _run_hooks(stage, address, session.id)
    return {
        "hook_ms": hook,
        "hook_over_python": hook / bare,
        "gateway_prefetch_p50_ms": (p50(asked) - p50(direct)) / US / 1_000,
        "gateway_prefetch_p99_ms": (p99(asked) - p99(direct)) / US / 1_000,
        "gateway_publish_per_s": rate,
    }


def _run_hooks(stage: Stage, address: str, session: str) -> tuple[float, float]:
    """Return the median milliseconds of a hook that brings a block, and of a bare Python."""
    folder, transcript = stage.data_dir / "hooks", stage.data_dir / "projects" / "t.jsonl"
    (folder / "sessions").mkdir(parents=True)
    transcript.parent.mkdir()
    host, _, port = address.rpartition(":")
    config = {"host": host, "port": int(port), "key": "", "owner": {}}
    config["transcripts"] = str(transcript.parent)
    (folder / "gateway.json").write_text(json.dumps(config))
    given = {"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": PROMPT}
    told = json.dumps(given | {"transcript_path": str(transcript)}).encode()
    program = str(Path(sys.executable).with_name("memorybus-hook"))
    hooked = [program, "claude-code", str(folder)]
    hooks, bare = [], []
    with transcript.open("a") as lines:
        for number in range(_HOOKS):
            lines.write(f'{{"type": "user", "message": {{"content": "Turn {number}?"}}}}\n')
            lines.write('{"type": "assistant", "message": {"content": "Yes."}, "sessionId": "t"}\n')
            lines.flush()
            took, printed = _run(hooked, told)
            if b"additionalContext" not in printed:
                raise RuntimeError(f"the hook brought nothing: {printed[:200]!r}")
            hooks.append(took)
            bare.append(_run([sys.executable, "-c", "pass"], b"")[0])
    return statistics.median(hooks), statistics.median(bare)


def _run(command: list[str], given: bytes) -> tuple[float, bytes]:
    began = time.perf_counter()
    done = subprocess.run(command, input=given, capture_output=True, check=True)
    return (time.perf_counter() - began) * 1_000, done.stdout


def _publish(connection: http.client.HTTPConnection, events: int) -> float:
    """Publish events by batches, and return how many a second were accepted."""
    event = {"type": "TurnCompleted", "user": "Where is the ladder?", "assistant": "In the shed."}
    batch = json.dumps({"events": [{"session": "s", "event": event}] * _BATCH}).encode()
    count = max(1, events // _BATCH)
    began = time.perf_counter()
    for _ in range(count):
        if len(_ask(connection, "/v1/events", batch)["receipts"]) != _BATCH:
            raise RuntimeError("a batch was not accepted whole")
    return count * _BATCH / (time.perf_counter() - began)


def _ask(connection: http.client.HTTPConnection, path: str, body: bytes) -> Any:
    connection.request("POST", path, body, _JSON)
    response = connection.getresponse()
    data = response.read()
    if response.status >= http.client.BAD_REQUEST:
        raise RuntimeError(f"{path} failed: {response.status} {data[:200]!r}")
    return json.loads(data)


@contextmanager
def served(stage: Stage) -> Iterator[str]:
    """Run the server as a process; yield ``HOST:PORT``."""
    words = [sys.executable, "-m", "memorybus", "serve", "--api", "--port", "0", "--json"]
    environment = to_environ(stage.settings, {"PYTHONPATH": str(ROOT / "bench")})
    log = stage.data_dir / "gateway.log"
    with log.open("wb") as out:
        process = subprocess.Popen(words, env=environment, stdout=out, stderr=out)
    try:
        wait_for("the gateway", lambda: b'"url"' in log.read_bytes())
        line = next(text for text in log.read_text().splitlines() if '"url"' in text)
        yield re.sub(r"^http://|/v1$", "", json.loads(line)["api"])
    finally:
        process.terminate()
        process.wait(30)
