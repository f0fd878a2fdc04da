"""`Session.prefetch` answers the prompt it is given, by real workers, and never waits too long."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.processes import children_of
from helpers.processes.stalls import MARGIN
from helpers.processes.waiting import wait_until
from helpers.redis.served import Served, served
from helpers.redis.servers import unreachable_client
from helpers.stories.scenario import NAME, PATIENT, recorded, wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status
from memorybus.recall import prompt_asks
from memorybus.recall.health import PromptCounts, read_counts, report_counts
from memorybus.recall.model import build_request
from memorybus.redis.keys import Keys
from memorybus.registry.instances import InstancePause
from memorybus_console.operations.stores import Stores

pytestmark = pytest.mark.xdist_group("this_prompt")

HOLO = "holographic"
FACTS = {
    "What is the parrot called?": "The parrot is called Admiral.",
    "Where does the heron nest?": "The heron nests behind the boathouse.",
    "When is the roof repaired?": "The roof is repaired in October.",
}
WAIT = 4.0
"""Seconds that a prompt waits for a provider that hangs: longer than a busy machine stands still.
"""
SURE: Any = {**PATIENT, "prefetch_wait": 30.0}


@pytest.fixture(name="sure")
def _sure(redis_url: str, make_settings: MakeSettings) -> Settings:
    return make_settings(url=redis_url, providers=(HOLO,), **SURE)


@pytest.fixture(scope="module", name="world")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    options = {"providers": (HOLO,), "prefetch_wait": 30.0}
    with served(tmp_path_factory, "prompts", **options) as world:
        yield world


@pytest.fixture(name="bus")
def _bus(world: Served) -> Iterator[MemoryBus]:
    with MemoryBus.connect(world.settings) as bus:
        yield bus


@pytest.fixture(name="user")
def _user(request: pytest.FixtureRequest) -> str:
    """Return a user of this test's own."""
    return str(request.node.name)


def told(bus: MemoryBus, name: str = "s", user: str | None = None) -> Session:
    """Return a session that has told all facts, as the log has them."""
    session = bus.session(name, user=user, warm=False)
    for number, fact in enumerate(FACTS.values()):
        session.turn_completed(fact, "I see.", ordinal=number)
    assert bus.flush(timeout=30)
    return session


def answered(session: Session) -> Callable[[], bool]:
    """Return a look whether all facts can be recalled."""
    return lambda: all(fact in session.prefetch(asked) for asked, fact in FACTS.items())


@pytest.mark.timeout(240)
def test_each_prompt_gets_its_own_answer(bus, user):
    """Topics change at each prompt: each block answers this one, and "ok" gets none."""
    session = told(bus, user=user)
    wait_until(answered(session), "all that was told is recalled", 60)
    for asked, fact in FACTS.items():
        block = session.prefetch(asked)
        found = sorted((block.find(one), one) for one in FACTS.values() if one in block)
        assert found[0][1] == fact, "before what was said around it"
        assert session.prefetch("ok, thanks") == ""
    assert session.prefetch("Who won the regatta of Utrecht?") == ""


@pytest.mark.timeout(240)
def test_a_prompt_without_an_answer_counts_the_provider_that_failed(
    redis_url, make_settings, spawn
):
    """G9: a failed answer is counted under its provider's name, and the others' are still read."""
    raising = recorded("RaisingRecall")["provider"][NAME]
    settings = make_settings(
        url=redis_url, providers=(HOLO, NAME), provider={NAME: raising}, **SURE
    )
    worker(spawn, settings, jobs=2)
    with MemoryBus.connect(settings) as bus:
        session = told(bus)
        wait_until(answered(session), "all that was told is recalled", 60)

        def has_failed():
            session.prefetch("Who said it?")
            return bus.counters.prefetch_failed

        wait_until(has_failed, "the other provider is asked, too", 60)
        before = bus.counters.prefetch_failures
        for prompt in FACTS:  # its recalls are paused meanwhile
            session.prefetch(f"{prompt} Is that so?")
    assert bus.counters.prefetch_failures == before + len(FACTS)
    assert bus.counters.prefetch_failed == {NAME: bus.counters.prefetch_failures}


@pytest.mark.timeout(240)
def test_a_prompt_whose_question_cannot_be_sent_is_counted(make_redis, make_settings, spawn):
    """G9: while only the jobs' Redis is away, each prompt that lacks its answer counts."""
    log, jobs = make_redis(), make_redis()
    settings = make_settings(url=log.url, jobs_url=jobs.url, providers=(HOLO,), **SURE)
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = told(bus)
        wait_until(answered(session), "all that was told is recalled", 60)
        before = bus.counters.prefetch_failed.get("redis", 0)
        jobs.kill()
        session.prefetch("Which parrot was that?")
        session.prefetch("Which heron was that?")
        assert bus.counters.prefetch_failed["redis"] == before + 2


@pytest.mark.timeout(240)
def test_an_answer_that_came_too_early_is_asked_again(redis_client, sure, spawn):
    """What a provider answers before it has applied a session's turns answers no later prompt."""
    prompt, fact = next(iter(FACTS.items()))
    with MemoryBus.connect(sure) as bus, Stores(sure) as stores:
        stores.instances.set_pause(HOLO, InstancePause("a test"))
        worker(spawn, sure, jobs=1)
        session = told(bus)
        assert session.prefetch(prompt) == ""
        stores.instances.resume(HOLO)
        wait_applied(redis_client, sure, HOLO)
        assert fact in session.prefetch(prompt)


@pytest.mark.timeout(240)
def test_an_answer_before_events_are_in_the_log_is_asked_again(
    redis_client, sure, spawn, monkeypatch
):
    """A prompt that overtakes its session's last events in the spool is asked again later."""
    worker(spawn, sure, jobs=1)
    prompt, fact = next(iter(FACTS.items()))
    with MemoryBus.connect(sure) as bus:
        session = bus.session("s", warm=False)
        with monkeypatch.context() as spooled:
            spooled.setattr(type(bus.publisher), "unsent", 1)
            assert session.prefetch(prompt) == ""
        told(bus, "another")
        wait_applied(redis_client, sure, HOLO)
        assert fact in session.prefetch(prompt)


@pytest.mark.timeout(240)
def test_what_the_window_holds_is_not_recalled(bus, user):
    """A memory that the conversation shows is left out, warm or fresh; others are given."""
    prompt = "What of the parrot, the heron and the roof?"
    parrot, *others = FACTS.values()
    session = told(bus, user=user)
    wait_until(lambda: all(fact in session.prefetch(prompt) for fact in FACTS.values()), "all")
    for name in ("s", "fresh"):
        block = bus.session(name, user=user, warm=False).prefetch(
            prompt, known=[{"role": "user", "content": f"Hello!\n{parrot} Really."}]
        )
        assert parrot not in block
        assert all(fact in block for fact in others)


@pytest.mark.timeout(240)
def test_a_prompt_that_only_points_back_is_asked_with_the_one_before(bus, user):
    """ "And when is that?" is about the last prompt that named something, across an "ok"."""
    session = told(bus, user=user)
    wait_until(answered(session), "all that was told is recalled", 60)
    assert session.prefetch("and when is that?") != ""
    assert bus.session("another", user=user, warm=False).prefetch("and when is that?") == ""
    session.prefetch("Where does the heron nest?")
    session.prefetch("ok")
    assert FACTS["Where does the heron nest?"] in session.prefetch("why there?")
    assert FACTS["Where does the heron nest?"] in session.branch("b").prefetch("and why?")


@pytest.mark.timeout(240)
def test_how_prompts_were_answered_is_counted(world, user):
    """The status says by provider how many answers were fresh, warm, late, or nothing."""
    before = read_status(world.settings).jobs[0].prompts
    with MemoryBus.connect(world.settings) as bus:
        session = told(bus, user=user)
        wait_until(answered(session), "all that was told is recalled", 60)
        for asked in (*FACTS, list(FACTS)[-1]):  # the last one is warm the second time
            session.prefetch(asked)
    [jobs] = read_status(world.settings).jobs
    assert jobs.prompts.fresh >= before.fresh + len(FACTS)
    assert jobs.prompts.warm >= before.warm + 1
    assert jobs.prompts.mean_ms is not None


def test_a_prompt_that_was_overtaken_is_answered_all_the_same(world, bus, user):
    """Who waits gets a reply, also if the session has asked something else meanwhile."""
    session = told(bus, user=user)
    wait_until(answered(session), "all that was told is recalled", 60)
    want = build_request(session.scope, session.ref, "the parrot", 2_000)
    soon = round(time.time() * 1000) + 60_000
    older_than_all = 0
    ask = prompt_asks.PromptAsk("f" * 32, session.slot, older_than_all, want, soon)
    prompt_asks.put_question(world.client, world.keys, ask, [HOLO])
    reply = prompt_asks.await_reply(world.client, world.keys, ask, 4.0)
    assert reply is not None
    assert reply.result is not None
    assert "Admiral" in str(reply.result.lines)


@pytest.mark.timeout(240)
def test_a_provider_that_hangs_costs_a_prompt_its_wait_and_no_more(
    redis_url, make_settings, spawn, witness
):
    """G9: of two providers one hangs: the other's answer is there when the wait is over."""
    both = {**recorded("Transactional"), "providers": (HOLO, NAME)}
    settings = make_settings(url=redis_url, **both, prefetch_wait=WAIT)
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = told(bus)
        fact = FACTS["What is the parrot called?"]
        wait_until(lambda: fact in session.prefetch("What is the parrot called?"), "it answers", 60)
        prompt = "!hang Where does the heron nest?"
        block, took = witness.timed(lambda: session.prefetch(prompt))
    assert "boathouse" in block
    assert took < WAIT + MARGIN


@pytest.mark.timeout(240)
def test_a_killed_recall_process_costs_its_prompts_and_no_later_ones(
    redis_url, make_settings, spawn, witness
):
    """G9: the process that answers is killed with a question in hand: another answers the next."""
    settings = make_settings(url=redis_url, providers=(HOLO,), prefetch_wait=1.0)
    running = worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = told(bus)
        wait_until(answered(session), "all that was told is recalled", 60)
        for child in children_of(running.pid):
            child.kill()
        prompt = "What of the parrot, the heron and the roof?"
        _, took = witness.timed(lambda: session.prefetch(prompt))
        assert took < 1.0 + MARGIN
        session = bus.session("later", warm=False)
        wait_until(answered(session), "another process answers", 60)


def test_with_redis_away_no_prompt_waits(make_redis, make_settings):
    """G9: while the flusher knows that Redis is away, a prompt is answered at once by nothing."""
    server = make_redis()
    settings = make_settings(url=server.url, prefetch_wait=60.0)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        server.stop()
        wait_until(lambda: session.turn_started("hello?") and bus.problem, "Redis is away", 30)
        began = time.perf_counter()
        assert session.prefetch("What is the parrot called?") == ""
        assert time.perf_counter() - began < 5.0


def test_counts_that_could_not_be_told_are_kept(settings):
    """What was counted while Redis was away is told when it is back."""
    keys = Keys(settings.namespace)
    counted = deque([("notes", "fresh", 1), ("notes", "nothing", 1), ("notes", "waited_ms", 7)])
    with pytest.raises(redis.RedisError):
        report_counts(unreachable_client(), keys, counted)
    with redis.Redis.from_url(settings.redis_url) as client:
        report_counts(client, keys, counted)
        [found] = read_counts(client, keys, ["notes"]).values()
    assert found == PromptCounts(fresh=1, nothing=1, waited_ms=7)


JANUARY, MARCH = 1_767_225_600_000, 1_772_323_200_000
QUESTION = "Where do I live?"


def test_what_was_known_then(make_world):
    """What was said later does not count; who cannot say is named with the reason (G9)."""
    world = make_world(providers=("holographic", "builtin"))
    world.worker()
    with world.bus() as bus:
        session = bus.session("s", user="ana", warm=False)
        session.turn_completed("I live in Lisbon", "", at=JANUARY)
        session.turn_completed("I moved to Oslo", "", at=MARCH)
        assert bus.flush("logged", 30)
        then = bus.recall(QUESTION, user="ana", as_of=MARCH - 1, timeout=30)
        now = bus.recall(QUESTION, user="ana", timeout=30)

    assert [(one.text, one.until) for one in then.results] == [("I live in Lisbon", None)]
    assert list(then.missing) == ["builtin"]
    assert "it keeps no times" in then.missing["builtin"]
    assert {(one.text, one.until, one.before) for one in now.results} == {
        ("I moved to Oslo", None, ""),
        ("I live in Lisbon", None, ""),
    }
    assert "[2026-03-01, user] I moved to Oslo" in now.text
    assert now.missing == {}

    asked = ("recall", QUESTION, "--user", "ana", "--json", "--as-of")
    done = world.run(*asked, "2026-02-01")
    assert [one["text"] for one in json.loads(done.stdout)["results"]] == ["I live in Lisbon"]
    assert "builtin did not answer" in done.stderr
    assert world.run(*asked, "last week").returncode == 2
