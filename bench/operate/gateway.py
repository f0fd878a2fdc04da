"""What the gateway adds to a warm prefetch, and how many events one client publishes by it.

The server is a process of its own, as people start it, and the client keeps one connection.
``gateway_prefetch_p50_ms`` is the median of a request less the median of `Session.prefetch` in this
process, for the same warm block.
"""

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from gauge import US, Figures, Size, p50, p99, timed
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import to_environ
from recall.prefetch import PROMPT, warm_session
from stage import ROOT, Stage, wait_for

_BATCH = 100
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
    return {
        "gateway_prefetch_p50_ms": (p50(asked) - p50(direct)) / US / 1_000,
        "gateway_prefetch_p99_ms": (p99(asked) - p99(direct)) / US / 1_000,
        "gateway_publish_per_s": rate,
    }


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
