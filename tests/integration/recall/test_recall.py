"""Recall through real workers and RQ: asked after the events it should see, read warm."""

import base64
import os
import socket
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import redis
from helpers.processes.stalls import MARGIN, Witness
from helpers.processes.threads import side_by_side
from helpers.processes.waiting import wait_until
from helpers.redis.served import Served, served
from helpers.stories.scenario import recorded, thread_worker
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.errors import MissingProvider, NoWorker
from memorybus.recall.model import RecallRequest, WarmResult
from memorybus.recall.queue import JOB, queue_name
from memorybus.redis.keys import Keys
from rq import Callback, Queue, Webhook
from rq.serializers import JSONSerializer

pytestmark = pytest.mark.xdist_group("recall")


KINDS = {"rec": "Transactional", "other": "Keyed", "trash": "Garbage", "loud": "RaisingRecall"}


@pytest.fixture(scope="module", name="world")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    tables = {
        name: {"kind": f"helpers.providers.recording:{kind}", "speaker": name}
        for name, kind in KINDS.items()
    }
    options = {"providers": tuple(KINDS), "provider": tables, "recall_budget": 600}
    with served(tmp_path_factory, "recalled", **options) as world:
        yield world


def queue_of(world: Served, provider: str) -> Queue:
    """Return a provider's RQ queue."""
    name = queue_name(world.settings.namespace, provider)
    return Queue(name, connection=world.client, serializer=JSONSerializer)


@pytest.fixture(name="bus")
def _bus(world: Served) -> Iterator[MemoryBus]:
    with MemoryBus.connect(world.settings) as bus:
        yield bus


@pytest.fixture(name="user")
def _user(request: pytest.FixtureRequest) -> str:
    """Return a user of this test's own."""
    return str(request.node.name)


def warm(session: Session, wanted: str) -> str:
    """Wait until a session's block holds a text, and return the block."""

    def block() -> str:
        text = session.prefetch()
        return text if wanted in text else ""

    return wait_until(block, f"{wanted!r} is warm")


# -- what is recalled -----------------------------------------------------------------------------


def test_a_session_reads_its_own_writes(bus, user):
    """G9: what was published before `queue_prefetch` is in the block, each time."""
    session = bus.session("s", user=user, warm=False)
    for number in range(5):
        session.turn_completed(f"harbour fact{number}", "ok")
        session.queue_prefetch(f"fact{number}")
        assert f"harbour fact{number}" in warm(session, f"fact{number}")


def test_own_writes_are_read_after_a_reconnect(make_settings, redis_server):
    """G9: a request names the positions to wait for also when the connection is a new one."""
    settings = make_settings(**recorded("Transactional"))
    client = redis_server.client()
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.turn_completed("before", "ok")
        assert bus.flush("logged", 25)
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        session.turn_completed("after", "ok")
        assert bus.flush("logged", 25)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.queue_prefetch("what did I say")
        key = Keys(settings.namespace).want(session.slot)
        body: Any = wait_until(lambda: client.hget(key, "r"), "the request is there")
    assert max(msgspec.json.decode(body, type=RecallRequest).positions.values()) == 3


def test_the_block_is_labelled_and_within_its_budget(bus, user):
    """G10: the block names each provider in the order of the settings and keeps to the budget."""
    session = bus.session("s", user=user, warm=False)
    for number in range(40):
        session.turn_completed(f"lighthouse number {number} " + "y" * 30, "ok")
    session.queue_prefetch("lighthouse")
    wait_until(lambda: "rec" in session.prefetch(), "the first answers too")
    block = warm(session, "other")
    assert 0 < block.index("rec") < block.index("other")
    assert len(block) <= bus.settings.recall_budget
    assert "trash" not in block
    assert "loud" not in block


def test_the_newest_query_wins(bus, user):
    """G9: of many queries in a row the last one's answer stands in the end."""
    session = bus.session("s", user=user, warm=False)
    for number in range(20):
        session.turn_completed(f"word{number}", "ok")
    for number in range(20):
        session.queue_prefetch(f"word{number}")
    warm(session, "word19")
    session.queue_prefetch("word7")
    warm(session, "word7")
    wait_until(lambda: "word19" not in session.prefetch(), "no older answer is left")


def test_warm_results_survive_the_agents_object(world, user):
    """G9: another process that names the same session finds what is warm."""
    with MemoryBus.connect(world.settings) as bus:
        session = bus.session("s", user=user, warm=False)
        session.turn_completed("pomegranate", "ok")
        session.queue_prefetch("pomegranate")
        warm(session, "pomegranate")
        ttl = world.client.pttl(world.keys.warm(session.slot))
        assert 0 < ttl <= world.settings.recall_ttl * 1000
    with MemoryBus.connect(world.settings) as bus:
        warm(bus.session("s", user=user, warm=False), "pomegranate")


def test_a_resumed_session_asks_at_once(world, user):
    """G9: a session that is gone on with asks for memories before it publishes anything."""
    with MemoryBus.connect(world.settings) as bus:
        session = bus.session("s", user=user, warm=False)
        session.turn_completed("persimmon", "ok")
        assert bus.flush("logged", 25)
    with MemoryBus.connect(world.settings) as bus:
        session = bus.session("s", user=user, warm=False)
        session.queue_prefetch("persimmon")
        warm(session, "persimmon")


@pytest.mark.parametrize("how", ["branch", "compressed", "in place", "resume", "rewind"])
def test_what_continues_carries_over(world, bus, user, how):
    """G9: a session that continues another begins with its warm results, in any process."""
    first = bus.session("first", user=user, warm=False)
    first.turn_completed("tangerine", "ok")
    first.queue_prefetch("tangerine")
    warm(first, "tangerine")
    ways: dict[str, Callable[[], Session]] = {
        "branch": lambda: first.branch("second"),
        "compressed": lambda: first.compressed("second"),
        "in place": first.compressed,
        "resume": lambda: first.switched_to("second"),
        "rewind": first.undo,
    }
    second = ways[how]()
    assert "tangerine" in second.prefetch()
    wait_until(lambda: world.client.exists(world.keys.warm(second.slot)), "carried over in Redis")
    with MemoryBus.connect(world.settings) as another:
        again = another.session(second.id, user=user, warm=False)
        assert again.ref == second.ref
        warm(again, "tangerine")


def test_a_reset_is_empty(bus, user):
    """G9: after a reset nothing is warm, under a new id and under an old one."""
    first = bus.session("first", user=user, warm=False)
    first.turn_completed("tangerine", "ok")
    first.queue_prefetch("tangerine")
    warm(first, "tangerine")
    second = first.switched_to("second", reset=True)
    assert second.prefetch() == ""
    assert second.switched_to("second", reset=True).prefetch() == ""
    assert second.switched_to("first", reset=True).prefetch() == ""


def test_two_users_never_meet(bus, user):
    """G9: equal session ids of two users, agents or workspaces share nothing."""
    scopes: list[dict[str, str]] = [
        {"user": f"{user}-a"},
        {"user": f"{user}-b"},
        {"user": f"{user}-a", "agent": "second"},
    ]
    sessions = [bus.session("same", warm=False, **scope) for scope in scopes]
    for number, session in enumerate(sessions):
        session.turn_completed(f"secret number{number}", "ok")
        session.queue_prefetch("secret")
    for number, session in enumerate(sessions):
        block = warm(session, "secret")
        assert f"number{number}" in block
        assert sum(f"number{other}" in block for other in range(3)) == 1


ODD_IDS = [
    "a:b",
    "{p00}",
    "*",
    "a\r\nb",
    "🦊" * 3,
    "x" * 512,
    " ",
    "../../etc",
    "%s%n",
    "mb:{p00}:log",
]


@pytest.mark.parametrize("odd", ODD_IDS, ids=range(len(ODD_IDS)))
def test_any_id_goes_the_whole_way(bus, user, odd):
    """G3: ids with any characters, as session, user and agent, are published, applied, recalled."""
    session = bus.session(odd, user=f"{odd[:400]}{user}", agent=odd, warm=False)
    session.turn_completed("kingfisher \x00 \ud800 end", "")
    session.queue_prefetch("kingfisher \udfff")
    assert "kingfisher \ufffd \ufffd end" in warm(session, "kingfisher")
    assert bus.session(odd, user=f"{odd[:400]}{user}", agent=odd, warm=False).ref == session.ref


# -- what is not asked ----------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["ok", "Thanks!", "/help", "  ", "", "go on", "y"])
def test_a_trivial_prompt_asks_nothing(world, bus, user, query):
    """G9: a prompt that memory cannot answer makes no request and no job."""
    session = bus.session(f"s{query}", user=user, warm=False)
    session.queue_prefetch(query)
    session.turn_completed("x", "ok")
    assert bus.flush("logged", 25)
    assert not world.client.exists(world.keys.want(session.slot))


def asked(client: redis.Redis, want: str) -> str:
    """Return the newest query of a request's key, or ""."""
    body: Any = client.hget(want, "r")
    return msgspec.json.decode(body, type=RecallRequest).query if body else ""


def test_one_job_waits_per_provider_and_session(redis_client, make_settings):
    """G10: without workers, any number of requests leaves one job per provider and session."""
    settings = make_settings(providers=("one", "two"))
    with MemoryBus.connect(settings) as bus:
        sessions = [bus.session(name, warm=False) for name in ("a", "b")]
        wants = [Keys(settings.namespace).want(session.slot) for session in sessions]
        for number in range(10):
            for session in sessions:
                session.queue_prefetch(f"question {number}")
            wait_until(
                lambda query=f"question {number}": all(
                    asked(redis_client, key) == query for key in wants
                ),
                "the requests are there",
            )
    for name in settings.providers:
        assert redis_client.llen(f"rq:queue:{queue_name(settings.namespace, name)}") == 2


# -- failures -------------------------------------------------------------------------------------


def test_garbage_fails_visibly_and_alone(world, bus, user):
    """G9: a provider that answers nonsense or raises is named with a reason; others answer."""
    bus.session("s", user=user, warm=False).turn_completed("walnut", "ok")
    assert bus.flush("logged", 25)
    found = bus.recall("walnut", user=user, timeout=25)
    assert [item.text for item in found.results] == ["walnut", "walnut"]
    assert set(found.missing) == {"trash", "loud"}
    assert "no recall today" in found.missing["loud"]
    assert "no answer in time" not in found.missing["trash"]
    failed = f"rq:failed:{queue_of(world, 'loud').name}"
    wait_until(lambda: world.client.zcard(failed) > 0, "the job failed")


def test_an_error_is_not_cached_as_empty(world, bus, user):
    """G9: a failing provider leaves no result, and what was warm before stays."""
    session = bus.session("s", user=user, warm=False)
    session.turn_completed("walnut !value", "ok")
    session.queue_prefetch("walnut")
    warm(session, "From rec")
    session.queue_prefetch("!value walnut")
    want = world.keys.want(session.slot)
    wait_until(lambda: world.client.hexists(want, "e:rec"), "the recall has failed")
    assert "From rec:\n- [rec] walnut" in session.prefetch()


def test_a_jobs_webhooks_are_not_called(world, bus, user):
    """G10: who writes a job cannot make a worker send requests, nor read why the job failed."""
    with socket.create_server(("127.0.0.1", 0)) as theirs:
        url = f"http://127.0.0.1:{theirs.getsockname()[1]}/"
        told = [Webhook(url, "failed", timeout=1), Webhook(url, "finished", timeout=1)]
        queue_of(world, "rec").enqueue("os.system", "true", webhooks=told)
        session = bus.session("s", user=user, warm=False)
        session.turn_completed("walnut", "ok")
        session.queue_prefetch("walnut")
        warm(session, "walnut")  # so the job before it has ended
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            theirs.accept()


def test_a_job_naming_another_callable_is_refused(world, bus, user, tmp_path):
    """G10: a job that names `os.system` fails without effect, its callbacks too; recalls go on."""
    victim = tmp_path / "victim"
    queue = queue_of(world, "rec")
    bad = queue.enqueue("os.system", f"touch {victim}")
    worse = queue.enqueue("subprocess.run", ["touch", str(victim)])
    called = queue.enqueue(
        JOB,
        "slot",
        "rec",
        on_success=Callback(os.mkdir),
        on_failure=Callback(os.mkdir),
    )
    wait_until(
        lambda: (
            world.client.zscore(f"rq:failed:{queue.name}", bad.id) is not None
            and world.client.zscore(f"rq:failed:{queue.name}", worse.id) is not None
        ),
        "both jobs failed",
    )
    wait_until(lambda: called.get_status() in {"finished", "failed", None}, "the third has run")
    assert not victim.exists()
    assert b"not on the list" in _reasons(world, bad.id)
    session = bus.session("s", user=user, warm=False)
    session.turn_completed("walnut", "ok")
    session.queue_prefetch("walnut")
    warm(session, "walnut")


def _reasons(world: Served, job: str) -> bytes:
    results: Any = world.client.xrevrange(f"rq:results:{job}", count=1)
    packed = results[0][1].get(b"exc_string", b"") if results else b""
    return zlib.decompress(base64.b64decode(packed)) if packed else b""


def test_no_worker_is_said(redis_server, make_settings):
    """G9: a recall that nobody would answer is refused at once, with the command that helps."""
    settings = make_settings(**recorded("Transactional"))
    with MemoryBus.connect(settings) as bus:
        with pytest.raises(MissingProvider, match="known: none"):
            bus.recall("anything", providers=["rec"])
        with pytest.raises(NoWorker, match="memorybus up"):
            bus.recall("anything")
        with thread_worker(settings):  # it runs no recall processes
            with pytest.raises(NoWorker):
                bus.recall("anything")
            with pytest.raises(MissingProvider, match="'wrong'"):
                bus.recall("anything", providers=["wrong"])


def test_a_question_of_any_text_is_taken(bus):
    """G9: a question with lone surrogates, NUL or nothing at all is answered, not refused."""
    for question in ("\ud800", "\x00", "", "x" * 100_000):
        assert bus.recall(question, providers=["rec"], timeout=25).missing == {}


# -- deadlines ------------------------------------------------------------------------------------


def test_prefetch_keeps_its_deadline(private_redis, make_settings, witness):
    """G9: with Redis frozen or gone, `prefetch` answers "" within its deadline, each time."""
    settings = make_settings(url=private_redis.url, prefetch_deadline=0.3)
    with MemoryBus.connect(settings) as bus:
        first = bus.session("s", warm=False)
        assert bus.flush("logged", 25)
        wait_until(lambda: not bus.warm.wants_connection, "the cache is connected")
        assert first.prefetch() == ""
        second = first.branch("b")
        private_redis.freeze()
        assert_in_time(witness, first, second, second)
        assert bus.recalls.failures >= 1
        private_redis.kill()
        assert_in_time(witness, second, second, second)
        private_redis.start()
        wait_until(lambda: _reads(bus, second), "it reads again")


def assert_in_time(witness: Witness, *sessions: Session) -> None:
    """Fail unless each of the reads keeps the deadline of 0.3 s."""
    took = [witness.timed(session.prefetch)[1] for session in sessions]
    assert max(took) < 0.3 + MARGIN, took


def _reads(bus: MemoryBus, session: Session) -> bool:
    before = bus.recalls.failures
    session.prefetch()
    return not bus.warm.wants_connection and bus.recalls.failures == before


def test_prefetch_from_many_threads(bus, user):
    """G9: threads that read at once each get their own session's block."""
    names = [f"t{number}" for number in range(6)]
    sessions = [bus.session(name, user=f"{user}{name}", warm=False) for name in names]
    for name, session in zip(names, sessions, strict=True):
        session.turn_completed(f"mine {name}", "ok")
        session.queue_prefetch("mine")
    for name, session in zip(names, sessions, strict=True):
        warm(session, name)
    wrong: list[str] = []

    def read(name: str, session: Session) -> None:
        wrong.extend(
            block for _ in range(50) if f"mine {name}" not in (block := session.prefetch())
        )

    side_by_side(read, zip(names, sessions, strict=True))
    assert wrong == []


@pytest.mark.parametrize("how", ["type", "field", "body"])
def test_foreign_warm_results_never_reach_the_agent(redis_client, make_settings, how):
    """G9: whatever stands at the warm key, `prefetch` answers, and counts a failure."""
    settings = make_settings()
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        key = Keys(settings.namespace).warm(session.slot)
        if how == "type":
            redis_client.set(key, "theirs", ex=60)
        elif how == "field":
            redis_client.hset(key, b"\xff\xfe", msgspec.msgpack.encode(WarmResult(("x",))))
        else:
            redis_client.hset(key, "rec", b"\xc1")
        redis_client.expire(key, 60)
        wait_until(lambda: not bus.warm.wants_connection, "the cache is connected")
        assert isinstance(session.prefetch(), str)
        assert how == "field" or bus.recalls.failures == 1
