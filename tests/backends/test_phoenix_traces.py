"""A worker's spans in Phoenix, a server that others wrote to keep traces that come by OTLP."""

from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import PATIENT, environ
from helpers.tracing.phoenix_server import PhoenixServer, phoenix_server
from helpers.tracing.spans import context_of, kept
from memorybus.agent.client import MemoryBus

pytestmark = pytest.mark.backends

ASKED, TEXT = "What is the parrot called?", "The parrot is called Admiral."


@pytest.mark.timeout(300)
def test_a_workers_spans_arrive(redis_url, make_settings, spawn, tmp_path):
    """What a real worker exports, a real server takes: the answer is below the agent's recall."""
    sure: Any = {**PATIENT, "prefetch_wait": 30.0}
    settings = make_settings(url=redis_url, providers=("holographic",), **sure)
    with phoenix_server(tmp_path) as phoenix, kept() as spans:
        told_by = {"OTEL_EXPORTER_OTLP_ENDPOINT": phoenix.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
        command = ("-m", "memorybus_workers", "worker", "--jobs", "1")
        spawn(*command, env=environ(settings) | told_by).wait_output('"ready":true')
        with MemoryBus.connect(settings) as bus:
            session = bus.session("s", user="ann", warm=False)
            session.turn_completed(TEXT, "I see.")
            assert bus.flush(timeout=30)
            wait_until(lambda: "Admiral" in session.prefetch(ASKED), "it is recalled")
        asked = f"{context_of(spans.of('recall')[-1]).span_id:016x}"
        answer = wait_until(lambda: found(phoenix, "answer", asked), "the answer is there", 60)
        apply = wait_until(lambda: found(phoenix, "apply", None), "the apply is there", 60)
    assert answer["attributes"]["memorybus.provider"] == "holographic"
    assert apply["attributes"]["messaging.system"] == "memorybus"
    assert "parrot" not in str((answer, apply))


def found(phoenix: PhoenixServer, operation: str, parent: str | None) -> dict[str, Any] | None:
    """Return a span of an operation below another, or of a trace of its own."""
    for span in phoenix.spans():
        if span["name"].split(" ")[0] == operation and span["parent_id"] == parent:
            return span
    return None
