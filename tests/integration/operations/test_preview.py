"""What a prompt would be given, asked by an operator: the same as the session's own prompt gets."""

from collections.abc import Iterator
from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import NAME, PATIENT, recorded, worker
from helpers.stories.world import World, standing_world
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.recall.health import read_counts
from memorybus_console.operations.preview import Asker, PromptPreview, preview_prompt

HOLO = "holographic"
FACT, QUESTION = "The parrot is called Admiral.", "What is the parrot called?"
SURE: Any = {**PATIENT, "prefetch_wait": 30.0, "prefetch_deadline": 20.0}
ANA = Asker(user="ana")
WAIT = 4.0
"""Seconds that a prompt waits for a provider that hangs."""


@pytest.fixture(name="world", scope="module")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return a bus that recalls the fact for ana."""
    more = {"providers": (HOLO,), "user": "ana", **SURE}
    with standing_world(tmp_path_factory.mktemp("logs"), **more) as world:
        world.worker()
        say(world.settings)
        yield world


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
def test_an_operator_sees_the_very_block_of_the_next_prompt(world):
    """The block is byte for byte the session's own; each memory says why, and from which event."""
    sure = world.settings
    found = remembered(sure)
    [one] = found.answers
    assert (one.provider, one.outcome, one.why) == (HOLO, "fresh", "")
    assert one.ms is not None
    assert one.given >= 1
    [item] = [item for item in found.items if "Admiral" in item.text]
    assert item.parts
    assert item.event
    before = read_counts(world.redis, world.keys, [HOLO])
    with MemoryBus.connect(sure) as bus:
        session = bus.session("other", warm=False)
        assert session.prefetch(QUESTION) == found.block
    assert read_counts(world.redis, world.keys, [HOLO]) != before, "a prompt is counted"
    stranger = preview_prompt(sure, QUESTION, Asker(user="bob"))
    assert (stranger.block, stranger.items) == ("", ())


@pytest.mark.timeout(240)
def test_the_command_shows_the_block_as_it_is(world):
    """`recall --prompt` prints the same block, and as JSON each provider's part."""
    block = remembered(world.settings).block
    words = ("recall", QUESTION, "--user", "ana", "--prompt")
    assert block in world.run(*words).stdout
    told = world.result(*words)
    assert [one["provider"] for one in told["answers"]] == [HOLO]
    assert told["items"][0]["parts"]
    assert world.run(*words, "--provider", HOLO).returncode == 2


@pytest.mark.timeout(240)
def test_what_stands_ready_for_a_session_is_told_as_warm(world):
    """With a session, its own warm answers count, as they would; asking takes none away."""
    sure = world.settings
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
