"""The walk of a warm prefetch through the code, as `docs/architecture.md` tells it."""

import re
from pathlib import Path

import msgspec
import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.walks import walk_of
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.ids import text_digest
from memorybus.recall.model import RecallRequest, WarmResult
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus.text.fence import line

PROMPT = "What is the parrot called?"
MOST_CALLS, MOST_MODULES = 25, 8
STEPS = re.compile(r"^Session\.prefetch .*?^```", re.MULTILINE | re.DOTALL)
"""The steps of the walk in `docs/architecture.md`: each line is calls, then what they do."""


@pytest.fixture(name="two")
def _two(redis_url: str, make_settings: MakeSettings) -> Settings:
    return make_settings(url=redis_url, providers=("first", "second"), prefetch_wait=0.0)


def keep_warm(client: redis.Redis, settings: Settings, session: Session, provider: str) -> None:
    """Store an answer to the prompt as a provider's job does."""
    keys = Keys(settings.namespace)
    want = msgspec.json.encode(RecallRequest(PROMPT))
    generation = scripts.run(client, scripts.request_recall(keys, session.slot, want, 60_000))
    result = WarmResult((line(f"{provider} keeps the parrot"),), asked=text_digest(PROMPT))
    body = msgspec.msgpack.encode(result)
    call = scripts.store_warm(keys, session.slot, provider, generation, body, 60_000)
    scripts.run(client, call)


def test_a_warm_prefetch_is_a_short_walk(redis_client, two):
    """G9: from `Session.prefetch` to a warm block of two providers there are few calls."""
    with MemoryBus.connect(two) as bus:
        session = bus.session("s", warm=False)
        for provider in two.providers:
            keep_warm(redis_client, two, session, provider)
        wait_until(lambda: "second keeps" in session.prefetch(PROMPT), "both answers are warm")
        walk = walk_of(lambda: session.prefetch(PROMPT))
    assert len(walk.calls) <= MOST_CALLS, walk.calls
    assert len(walk.modules) <= MOST_MODULES, walk.modules
    page = Path(__file__).parents[3] / "docs" / "architecture.md"
    steps = re.findall(r"^ *(\S+)(?: ► (\S+))?", STEPS.findall(page.read_text())[0], re.MULTILINE)
    told = [call for step in steps for call in step if call and call != "```"]
    names = [call.partition(":")[2] for call in walk.calls]
    assert [name for name in names if name in told] == told
