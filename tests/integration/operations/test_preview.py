"""What a prompt would be given, asked by an operator: the same as the session's own prompt gets."""

import json
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.processes.commands import Ran, run_command
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import NAME, PATIENT, environ, recorded, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.recall.health import read_counts
from memorybus.redis.keys import Keys
from memorybus_console.operations.preview import Asker, PromptPreview, preview_prompt

HOLO = "holographic"
FACT, QUESTION = "The parrot is called Admiral.", "What is the parrot called?"
SURE: Any = {**PATIENT, "prefetch_wait": 30.0, "prefetch_deadline": 20.0}
ANA = Asker(user="ana")
WAIT = 4.0
"""Seconds that a prompt waits for a provider that hangs."""


@pytest.fixture(name="sure")
def _sure(redis_url: str, make_settings: MakeSettings) -> Settings:
    return make_settings(url=redis_url, providers=(HOLO,), user="ana", **SURE)


def remembered(settings: Settings, who: Asker = ANA) -> PromptPreview:
    """Wait until the fact is recalled; return what a prompt would be given then."""

    def asked() -> PromptPreview | None:
        found = preview_prompt(settings, QUESTION, who)
        return found if "Admiral" in found.block else None

    return wait_until(asked, "the fact is recalled", 60)


def say(settings: Settings) -> None:
    """Publish the fact as the person that the settings name."""
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed(FACT, "I see.", ordinal=0)
        assert bus.flush(timeout=30)


@pytest.mark.timeout(240)
def test_an_operator_sees_the_very_block_of_the_next_prompt(sure, spawn, redis_client):
    """The block is byte for byte the session's own; each memory says why, and from which event."""
    worker(spawn, sure, jobs=1)
    say(sure)
    found = remembered(sure)
    [one] = found.answers
    assert (one.provider, one.outcome, one.why) == (HOLO, "fresh", "")
    assert one.ms is not None
    assert one.given >= 1
    [item] = [item for item in found.items if "Admiral" in item.text]
    assert item.parts
    assert item.event
    before = read_counts(redis_client, Keys(sure.namespace), [HOLO])
    with MemoryBus.connect(sure) as bus:
        session = bus.session("other", warm=False)
        assert session.prefetch(QUESTION) == found.block
    assert read_counts(redis_client, Keys(sure.namespace), [HOLO]) != before, "a prompt is counted"
    stranger = preview_prompt(sure, QUESTION, Asker(user="bob"))
    assert (stranger.block, stranger.items) == ("", ())


@pytest.mark.timeout(240)
def test_what_stands_ready_for_a_session_is_told_as_warm(sure, spawn):
    """With a session, its own warm answers count, as they would; asking takes none away."""
    worker(spawn, sure, jobs=1)
    say(sure)
    remembered(sure)
    mine = Asker(user="ana", session="s")
    with MemoryBus.connect(sure) as bus:
        session = bus.session("s", warm=False)
        session.prefetch(QUESTION)
        block = wait_until(lambda: session.prefetch(QUESTION), "it is warm", 60)
    for _ in range(2):
        found = preview_prompt(sure, QUESTION, mine)
        assert [one.outcome for one in found.answers] == ["warm"]
        assert found.block == block
        assert found.waited_ms == 0


@pytest.mark.timeout(240)
def test_who_is_late_or_fails_is_named_and_not_in_the_block(redis_url, make_settings, spawn):
    """Of two providers one hangs: it is late after the wait of a prompt, the other in time."""
    both = {**recorded("Transactional"), "providers": (HOLO, NAME), "user": "ana"}
    settings = make_settings(url=redis_url, **both, **PATIENT, prefetch_wait=WAIT)
    worker(spawn, settings, jobs=1)
    say(settings)
    remembered(settings)
    preview = preview_prompt(settings, f"!hang {QUESTION}", ANA)
    outcomes = {part.provider: part.outcome for part in preview.answers}
    assert outcomes == {HOLO: "fresh", NAME: "late"}
    assert "Admiral" in preview.block
    assert preview.waited_ms >= preview.patience_ms == WAIT * 1000


def test_without_a_worker_each_provider_says_so(settings):
    """Nobody is waited for; a prompt that asks nothing asks nobody; a session is one person's."""
    assert preview_prompt(settings, QUESTION, ANA).answers == ()
    assert preview_prompt(settings, "ok, thanks", ANA).trivial
    with pytest.raises(ConfigError, match="name both"):
        preview_prompt(settings, QUESTION, Asker(user=None, session="s"))


@pytest.mark.timeout(240)
def test_the_command_shows_the_block_as_it_is(sure, spawn):
    """`recall --prompt` prints the same block, and as JSON each provider's part."""
    worker(spawn, sure, jobs=1)
    say(sure)
    block = remembered(sure).block
    words = ("recall", QUESTION, "--user", "ana", "--prompt")

    def run(*more: str) -> Ran:
        return run_command(environ(sure), *words, *more)

    assert block in run().stdout
    told = json.loads(run("--json").stdout)
    assert [one["provider"] for one in told["answers"]] == [HOLO]
    assert told["items"][0]["parts"]
    assert run("--provider", HOLO).returncode == 2
