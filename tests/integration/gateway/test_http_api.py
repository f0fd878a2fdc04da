"""The HTTP API on a real server, Redis and workers, as an agent in another language calls it."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.processes.stalls import MARGIN
from helpers.processes.waiting import wait_until
from helpers.stories.published import envelopes, published
from helpers.stories.scenario import patient, wait_applied, worker
from helpers.web.gateway import Api, gateway, key_ring, make_key, turn
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.events import OperatorActed
from memorybus_console.gateway.access import MOST_OF_A_KEY
from memorybus_console.gateway.app import MOST_BODY_BYTES, MOST_STREAMS
from memorybus_console.gateway.keys import RIGHTS
from memorybus_console.gateway.routes import EXPORT, ROUTES, TAIL, Route

pytestmark = pytest.mark.timeout(180)

UNKNOWN_EVENT = "0" * 32


@pytest.fixture(name="settings")
def _settings(redis_url: str, make_settings: MakeSettings) -> Settings:
    return patient(make_settings(url=redis_url, providers=("holographic",), partitions=2))


def sample(route: Route) -> tuple[str, dict[str, Any]]:
    """Return a path and a body for a route, which name nobody."""
    path = route.path.replace("{session}", "s").replace("{tool}", "memory_search")
    path = path.replace("{event}", UNKNOWN_EVENT).replace("{act}", "pause-provider")
    bodies: dict[str, dict[str, Any]] = {
        "publish": {"events": [{"session": "s", "event": {"type": "SessionEnded"}}]},
        "switch": {"new_id": "t"},
        "undo": {"events": []},
        "queue_prefetch": {"query": "?"},
        "read_transcript": {"format": "codex", "lines": ""},
        "recall": {"question": "what?", "timeout": 0.1},
        "correct_memory": {"content": "no"},
        "act": {"arguments": {"name": "holographic"}},
    }
    return path, bodies.get(route.name, {})


def of_ann(kind: str, **fields: Any) -> dict[str, Any]:
    """Return an event of ann's session."""
    return {"session": "s", "user": "ann", "event": {"type": kind, **fields}}


def test_what_is_published_is_recalled_for_this_person_alone(spawn, settings, redis_client):
    """A turn that one request publishes stands in the block of another, of this person only."""
    worker(spawn, settings, jobs=1)
    with gateway(settings) as api:
        published = {"events": [turn("s", "ann", "My parrot is called Kiko.")], "level": "logged"}
        reply = api.post("/events", published)
        assert (reply.status, reply.body["reached"]) == (202, True)
        assert reply.body["receipts"][0]["level"] == "logged"
        wait_applied(redis_client, settings, "holographic")
        asked = {"query": "What is my parrot called?", "wait": 20}
        block = api.post("/sessions/s/prefetch", asked | {"user": "ann"}).body["block"]
        assert "Kiko" in block
        assert api.post("/sessions/s/prefetch", asked | {"user": "bob"}).body["block"] == ""
        answer = api.post("/recall", {"question": "parrot", "user": "ann"}).body
        assert "Kiko" in answer["text"]
        memories = api.get("/memories?user=ann").body["memories"]
        assert [memory["text"] for memory in memories] == ["My parrot is called Kiko.", "Noted."]
        tools = api.get("/tools").body
        assert "memory_search" in [tool["name"] for tool in tools["tools"]]
        found = api.post(
            "/sessions/s/tools/memory_search", {"user": "ann", "arguments": {"query": "parrot"}}
        )
        assert "Kiko" in json.dumps(found.body)


def test_a_request_that_is_sent_again_adds_nothing(settings, redis_client):
    """The same Idempotency-Key derives the same ids; an id of the caller's own does the same."""
    body = {"events": [turn("s", "ann", "One."), turn("s", "ann", "Two.")], "level": "logged"}
    own = {"events": [turn("s", "ann", "Three.", id="ab" * 16)], "level": "logged"}
    with gateway(settings) as api:
        first, again = (api.post("/events", body, idempotency_key="r-1").body for _ in range(2))
        for _ in range(2):
            api.post("/events", own)
    ids = [[one["event_id"] for one in reply["receipts"]] for reply in (first, again)]
    assert ids[0] == ids[1]
    texts = sorted(getattr(one.event, "user", "") for one in envelopes(settings))
    assert texts == ["", "One.", "Three.", "Two."]  # the first is the session's start


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/sessions/s/compress", {"user": "ann"}),
        ("/sessions/s/switch", {"user": "ann", "new_id": "s-2"}),
        ("/sessions/s/switch", {"user": "ann", "new_id": "s-2", "reset": True}),
        ("/sessions/s/undo", {"user": "ann", "events": ["ab" * 16]}),
        ("/events", {"events": [of_ann("TurnStarted", message="Hi.")]}),
        ("/events", {"events": [of_ann("ContextCompressing", messages=[])]}),
    ],
)
def test_a_step_of_a_session_that_is_sent_again_is_taken_once(settings, redis_client, path, body):
    """The second request has the first one's reply, and the log has one event of it."""
    with gateway(settings) as api:
        api.post("/events", {"events": [turn("s", "ann", "One.")]})
        first, again = (api.post(path, body, idempotency_key="r-1").body for _ in range(2))
        for receipt in (*first.get("receipts", ()), *again.get("receipts", ())):
            del receipt["sequence"]  # each has its own
        assert first == again
        api.post("/events", {"events": [turn("s", "ann", "Two.")], "level": "logged"})
    kinds = [type(entry.event).__name__ for entry in envelopes(settings)]
    assert len(kinds) == 4, kinds  # a start, two turns and the step


@pytest.mark.parametrize("step", ["compress", "undo"])
def test_a_step_that_is_sent_again_to_another_process_is_taken_once(settings, redis_client, step):
    """A gateway that was started anew gives the same reply, and the log has one event of it."""
    body = {"user": "ann"} | ({"events": ["ab" * 16]} if step == "undo" else {})
    replies = []
    for _ in range(2):
        with gateway(settings) as api:
            replies.append(api.post(f"/sessions/s/{step}", body, idempotency_key="r-1").body)
            api.post("/events", {"events": [of_ann("TurnStarted")], "level": "logged"})
    assert replies[0] == replies[1]
    kinds = [type(entry.event).__name__ for entry in envelopes(settings)]
    assert kinds.count("SessionSwitched") == 1


def test_a_session_is_branched_switched_compressed_and_undone(settings, redis_client):
    """Each step of the lineage is an event of the session, and names its place."""
    with gateway(settings) as api:
        start = api.post("/sessions", {"session": "s", "user": "ann", "title": "Birds"}).body
        assert start["session"] == {"id": "s", "root": "s"}
        events = {"events": [turn("s", "ann", "One.")]}
        event_id = api.post("/events", events).body["receipts"][0]["event_id"]
        branch = api.post("/sessions/s/branch", {"user": "ann", "new_id": "b"}).body
        assert (branch["session"]["id"], branch["session"]["root"]) == ("b", "s")
        undone = api.post("/sessions/s/undo", {"user": "ann", "events": [event_id]}).body
        compressed = api.post("/sessions/s/compress", {"user": "ann"}).body
        assert compressed["session"]["epoch"] == undone["session"]["epoch"] + 1
        moved = api.post(
            "/sessions/s/switch", {"user": "ann", "new_id": "t", "reason": "reset", "reset": True}
        ).body
        assert moved["session"]["root"] == "t"
        api.post("/events", {"events": [turn("t", "ann", "Two.")], "level": "logged"})
    switched = [one for one in envelopes(settings) if hasattr(one.event, "retracted")]
    assert [one.event.retracted for one in switched if one.event.rewound] == [(event_id,)]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_each_route_needs_a_key_of_its_right(settings, route):
    """Without a key the answer is 401, with a key that has all rights but this one 403."""
    path, body = sample(route)
    key = make_key(settings, "ann", may=tuple(set(RIGHTS) - {route.right}))
    with gateway(settings) as api:
        nobody = api.send(route.method, path, body)
        api.key = key
        without = api.send(route.method, path, body)
    assert (nobody.status, without.status) == (401, 403)
    assert nobody.headers["www-authenticate"] == "Bearer"
    assert route.right in without.body["detail"]


SCOPED = [route for route in ROUTES if "user" in route.request.__struct_fields__]


@pytest.mark.parametrize("route", SCOPED, ids=lambda route: route.name)
def test_a_key_reaches_no_other_person(settings, route):
    """A request that names another person, agent or workspace than its key is refused."""
    path, body = sample(route)
    if "event" in route.in_path:
        pytest.skip("its owner is that of the event: see the next test")
    with gateway(settings) as api:
        api.key = make_key(settings, "ann")
        for field, name in (("user", "bob"), ("agent", "other"), ("workspace", "w")):
            if route.has_body:
                reply = api.send(route.method, path, body | {field: name})
            else:
                reply = api.send(route.method, f"{path}?{field}={name}")
            assert (reply.status, field in reply.body["detail"]) == (403, True), reply.body


def test_events_memories_and_streams_of_others_are_out_of_reach(spawn, settings, redis_client):
    """A key publishes, corrects, deletes, exports and undoes nothing of another person."""
    worker(spawn, settings, jobs=1)
    with gateway(settings) as api:
        theirs = {"events": [turn("s", "bob", "Bob's PIN is 4711.")], "level": "logged"}
        event = api.post("/events", theirs).body["receipts"][0]["event_id"]
        wait_applied(redis_client, settings, "holographic")
        api.key = make_key(settings, "ann")
        assert api.post("/events", theirs).status == 403
        for method, body in (("PUT", {"content": "Bob's PIN is 1."}), ("DELETE", None)):
            assert api.send(method, f"/memories/{event}", body).status == 404
        for stream in (EXPORT, TAIL):
            assert api.get(f"{stream.path}?user=bob").status == 403
        assert "4711" not in api.get("/export").body
        assert api.post("/sessions/s/undo", {"events": [event]}).status == 200
        api.post("/events", {"events": [turn("s", "ann", "Hello there.")], "level": "logged"})
        wait_applied(redis_client, settings, "holographic")
        asked = {"question": "PIN", "user": "bob"}
        assert api.post("/recall", asked).status == 403
        api.key = make_key(settings, "bob")
        assert "4711" in api.post("/recall", asked).body["text"]


def test_a_key_of_a_workspace_reaches_no_event_without_one(settings):
    """An event outside the key's workspace is missing for the key, as one of another person is."""
    with gateway(settings) as api:
        sent = {"events": [turn("s", "ann", "The PIN is 4711.")], "level": "logged"}
        event = api.post("/events", sent).body["receipts"][0]["event_id"]
        api.key = make_key(settings, "ann", workspace="team")
        assert api.send("DELETE", f"/memories/{event}").status == 404


def test_an_idempotency_key_counts_within_one_session(settings):
    """The same header with another person, session or operation is another event."""
    with gateway(settings) as api:
        ids = [
            api.post("/events", {"events": [turn(session, user, "Hi.")]}, idempotency_key=key).body[
                "receipts"
            ][0]["event_id"]
            for session, user in (("s", "ann"), ("s", "bob"), ("t", "ann"))
            for key in ("x" * 200, "x" * 201)
        ]
        started = api.post("/sessions", {"user": "ann"}, idempotency_key="x" * 200).body
    assert len({*ids, started["session"]["id"]}) == len(ids) + 1


@contextmanager
def following(api: Api) -> Iterator[HTTPResponse]:
    """Follow ann's events; the first line was read."""
    with closing(HTTPConnection(api.address, timeout=30)) as connection:
        headers = {"authorization": f"Bearer {api.key}"}
        connection.request("GET", "/v1/events/tail?user=ann", headers=headers)
        with connection.getresponse() as stream:
            assert stream.status == 200, stream.read()
            assert stream.readline() == b": from now on\n"
            yield stream


def test_a_stream_ends_with_its_key(settings):
    """Whoever follows events with a key that is revoked gets no more."""
    with gateway(settings) as api:
        make_key(settings, "bob")
        api.key = make_key(settings, "ann")
        with following(api) as stream:
            with key_ring(settings) as ring:
                ring.revoke(api.key.split("_")[1])
            assert stream.read() == b"\n"


def test_streams_leave_threads_for_other_requests(settings):
    """As many streams as may be open delay no request; one more is refused."""
    with gateway(settings) as api, ExitStack() as streams:
        api.key = make_key(settings, "ann")
        for _ in range(MOST_STREAMS):
            streams.enter_context(following(api))
        began = time.monotonic()
        assert {api.get("/tools").status for _ in range(10)} == {200}
        assert time.monotonic() - began < 5
        assert api.get("/events/tail").status == 503


def test_a_key_whose_requests_wait_keeps_no_other_waiting(settings, redis_client):
    """However many requests of a key wait, others are answered, and so are its own, in turn."""
    with gateway(settings) as api, ExitStack() as waiting:
        ann, api.key = make_key(settings, "ann", per_second=0), make_key(settings, "bob")
        for n in range(2 * MOST_OF_A_KEY):
            body = {"events": [turn("s", "ann", f"{n}")], "level": "replicated", "timeout": 8}
            caller = waiting.enter_context(closing(HTTPConnection(api.address, timeout=60)))
            headers = {"authorization": f"Bearer {ann}", "content-type": "application/json"}
            caller.request("POST", "/v1/events", json.dumps(body).encode(), headers)
        wait_until(lambda: len(envelopes(settings)) >= MOST_OF_A_KEY, "as many wait as may")
        began = time.monotonic()
        assert {api.get("/tools").status for _ in range(5)} == {200}
        assert time.monotonic() - began < 4 + MARGIN


def test_a_key_that_ended_or_was_revoked_is_refused_at_once(settings):
    """An expired key, a revoked one, a wrong secret and a strange text get 401 and no more."""
    key = make_key(settings, "ann")
    expired = make_key(settings, "ann", expires_at=SYSTEM.now_ms() - 1)
    with gateway(settings) as api:
        api.key = key
        assert api.get("/tools").status == 200
        with key_ring(settings) as ring:
            ring.revoke(key.split("_")[1])
        wrong = expired.rpartition("_")[0] + "_" + "x" * 43
        for token in (key, expired, wrong, "mbk_", "mbk__", "x", "ü"):
            api.key = ""
            reply = api.get("/tools", authorization=f"Bearer {token}".encode().decode("latin-1"))
            assert reply.status == 401, token
            assert token == "x" or token not in json.dumps(reply.body), token


def test_a_wildcard_reaches_everybody_and_several_people_have_to_be_named(settings):
    """``*`` is every person; a key of two people needs `user`."""
    with gateway(settings) as api:
        api.key = make_key(settings, "*", agent="*", workspace="*")
        assert api.post("/sessions", {"session": "s", "user": "bob"}).status == 200
        api.key = make_key(settings, "ann", "bob")
        assert api.post("/sessions", {"session": "s"}).status == 403
        assert api.post("/sessions", {"session": "s", "user": "bob"}).status == 200
        assert api.post("/sessions", {"session": "s", "user": "cyd"}).status == 403


def test_without_keys_only_this_machine_may_call(settings):
    """A caller behind a proxy, or under another host's name, needs a key."""
    with gateway(settings) as api:
        assert api.get("/tools").status == 200
        assert api.get("/tools", x_forwarded_for="203.0.113.7").status == 401
        assert api.get("/tools", host="192.0.2.1").status == 401
        assert api.get("/tools", host="evil.example").status == 421


def test_pages_of_other_sites_may_not_call(settings):
    """A browser's request from another origin is refused, unless the origin is named."""
    with gateway(settings, "https://app.example") as api:
        assert api.post("/sessions", {}, origin="https://evil.example").status == 403
        assert api.post("/sessions", {}, origin="null").status == 403
        allowed = api.post("/sessions", {}, origin="https://app.example")
        assert allowed.status == 200
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"


def test_a_key_may_send_so_many_requests_a_second(settings):
    """What is above a key's rate is refused with 429, and when to try again."""
    with gateway(settings) as api:
        api.key = make_key(settings, "ann", per_second=3)
        replies = [api.get("/tools") for _ in range(12)]
    assert [reply.status for reply in replies][:3] == [200, 200, 200]
    refused = [reply for reply in replies if reply.status == 429]
    assert refused
    assert int(refused[0].headers["retry-after"]) > 0


@pytest.mark.parametrize(
    ("path", "body", "status", "word"),
    [
        ("/events", {"events": [turn("s", "", "x", event={"type": "No"})]}, 422, "No"),
        ("/events", {"events": []}, 422, "events"),
        ("/events", {"events": [turn("s", "", "x", id="no")]}, 422, "id"),
        ("/events", {"events": [turn("", "", "x")]}, 422, "session"),
        ("/events", {"events": [turn("s", "", "x", extra=1)]}, 422, "extra"),
        ("/events", {"events": [turn("s", "", "x", at=1_700_000_000)]}, 422, "seconds"),
        ("/events", b"{", 400, "truncated"),
        ("/events", b"[]", 422, "object"),
        ("/events", b'{"events":' + b"[" * 100_000, 400, "recursion"),
        ("/events", b'{"events": "\xed\xa0\x80"}', 400, "utf-8"),
        ("/sessions/s/prefetch", {"session": "t"}, 422, "session"),
        ("/sessions/s/prefetch", {"wait": 1e9}, 422, "wait"),
        ("/acts/nothing", {}, 422, "pause-provider"),
        ("/acts/pause-provider", {"arguments": {"nme": "x"}}, 422, "nme"),
    ],
)
def test_a_wrong_request_names_what_is_wrong(settings, path, body, status, word):
    """A problem has the status and names the field (RFC 9457)."""
    with gateway(settings) as api:
        reply = api.send("POST", path, body, {"content-type": "application/json"})
    assert reply.status == status, reply.body
    assert reply.headers["content-type"] == "application/problem+json"
    assert word in reply.body["detail"]
    assert reply.body["status"] == status
    assert reply.body["type"].startswith("urn:memorybus:problem:")


def test_a_body_is_bounded(settings):
    """A body that is too large is refused with 413, one that is no JSON with 415."""
    with gateway(settings) as api:
        large = b'{"events": "' + b"x" * MOST_BODY_BYTES + b'"}'
        kind = {"content-type": "application/json"}
        assert api.send("POST", "/events", large, kind).status == 413
        assert api.send("POST", "/events", b"{}", {"content-type": "text/plain"}).status == 415
        event = {"events": [turn("s", "", "x" * (settings.event_max_bytes + 1))]}
        assert api.post("/events", event).status == 413


def test_a_slow_body_ends(settings, monkeypatch):
    """A body that does not arrive in time is refused with 408."""
    monkeypatch.setattr("memorybus_console.gateway.app.BODY_SECONDS", 0.2)
    with gateway(settings) as api, socket.create_connection(api.address.split(":")) as connection:
        connection.sendall(
            b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            b"content-length: 100\r\n\r\n{"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 408")


def test_a_thousand_open_connections_leave_it_serving(settings):
    """Callers that connect and send nothing do not keep others from an answer."""
    with gateway(settings) as api:
        host, _, port = api.address.partition(":")
        idle = [socket.create_connection((host, int(port))) for _ in range(1_000)]
        try:
            assert api.get("/tools").status == 200
        finally:
            for connection in idle:
                connection.close()


def test_an_act_is_planned_confirmed_and_recorded(settings):
    """An act that loses something is planned until it is confirmed; its record names the key."""
    with gateway(settings) as api:
        api.key = make_key(settings, "ann", may=("operate",))
        names = [act["act"] for act in api.get("/acts").body]
        assert "discard-dead-letters" in names
        plan = api.post("/forget", {}).body
        assert plan["executed"] is False
        paused = api.post("/acts/pause-provider", {"arguments": {"name": "holographic"}}).body
        assert paused["paused"] is True
    acts = published(settings, OperatorActed)
    assert [(act.act, act.operator) for act in acts] == [
        ("pause provider", f"key:{api.key.split('_')[1]}")
    ]


def test_operators_read_the_verdict_and_what_agents_did(settings):
    """The verdict has its findings; insights count the people that a key reaches, and no others."""
    pytest.importorskip("duckdb", reason="the extra insights is not installed")
    with gateway(settings) as api:
        verdict = api.get("/health").body
        assert "no worker is alive" in json.dumps(verdict)
        both = [turn("s", "ann", "One."), turn("s", "bob", "Two.")]
        api.post("/events", {"events": both, "level": "logged"})
        api.key = make_key(settings, "*", agent="*", workspace="*")
        assert api.get("/insights").body["overview"]["turns"] == 2
        api.key = make_key(settings, "ann", workspace="*")
        assert api.get("/insights").body["overview"]["turns"] == 1
        assert api.get("/insights?user=bob").status == 403
        api.key = make_key(settings, "ann")
        assert api.get("/insights").status == 403


def test_a_persons_events_are_followed_and_exported(settings):
    """A stream brings this person's new events alone; an export brings all of theirs as lines."""
    with gateway(settings) as api:
        api.post("/events", {"events": [turn("s", "ann", "Before.")], "level": "logged"})
        host, _, port = api.address.partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(b"GET /v1/events/tail?user=ann HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            stream = connection.makefile("rb")
            while b"from now on" not in stream.readline():
                pass
            new = [turn("s", "bob", "Hidden."), turn("s", "ann", "Fresh.")]
            api.post("/events", {"events": new, "level": "logged"})
            lines: list[bytes] = []
            while not any(b"Fresh." in line for line in lines):
                lines.append(stream.readline())
        assert not any(b"Hidden." in line or b"Before." in line for line in lines)
        export = api.get("/export?user=ann")
    events = [json.loads(line)["event"].get("user", "") for line in export.body.splitlines()]
    assert events == ["", "Before.", "Fresh."]
    assert export.headers["memorybus-whole"] == "true"


def test_an_address_that_is_none_is_a_problem(settings):
    """An unknown path, or a method that a path does not have, is a problem."""
    with gateway(settings) as api:
        assert api.get("/nothing").body["type"] == "urn:memorybus:problem:no-such-path"
        assert api.send("DELETE", "/events").status == 404


def test_the_document_describes_every_route(settings):
    """The OpenAPI document has each route once, and every reference leads to a type."""
    with gateway(settings) as api:
        document = api.get("/openapi.json").body
    operations = [
        each["operationId"] for path in document["paths"].values() for each in path.values()
    ]
    assert sorted(operations) == sorted([route.name for route in ROUTES] + ["export", "tail"])
    parts = json.dumps(document).split('"#/components/schemas/')[1:]
    references = {part.partition('"')[0] for part in parts}
    assert "PublishedEvent" in references
    assert references <= set(document["components"]["schemas"])


def test_redis_is_away_and_events_are_accepted(make_settings, redis_server):
    """While Redis is away a turn is spooled and answered; a recall is a problem that names why."""
    settings = make_settings(url=redis_server.url, providers=("holographic",))
    with gateway(settings) as api:
        api.key = make_key(settings, "ann")
        assert api.get("/tools").status == 200
        redis_server.stop()
        reply = api.post("/events", {"events": [turn("s", "ann", "Kept.")]})
        assert (reply.status, reply.body["receipts"][0]["level"]) == (202, "spooled")
        recall = api.post("/recall", {"question": "what?"})
        assert (recall.status, recall.body["retry_after"] > 0) == (503, True)
        assert api.get("/events/tail").status == 503
        redis_server.start()
