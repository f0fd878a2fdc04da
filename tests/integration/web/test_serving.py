"""The page on a real server and a real Redis: who may look, who may act, what programs ask."""

import io
import json
import logging

import pytest
from helpers.processes.waiting import wait_until
from helpers.web.pages import HASH, TOKEN, served
from memorybus.agent.client import MemoryBus
from memorybus.errors import ConfigError
from memorybus.health.finding import Finding
from memorybus.health.metrics_server import Address
from memorybus.health.verdict import Verdict
from memorybus_console.web import serving


def test_the_overview_shows_what_the_status_knows(settings):
    """Figures and findings of the status are on the overview, with the remedy."""
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("Where is it?", "There.")
        assert bus.flush("logged", 10)
    with served(settings) as visitor:
        page = visitor.get("/")
    assert page.status == 200
    assert "no worker is alive" in page.text
    assert "run: memorybus up" in page.text
    assert "<dt>events</dt><dd>2</dd>" in page.text
    assert 'aria-label="lanes of builtin: 0 of 16 owned' in page.text


def test_what_is_shown_of_others_stays_text(make_settings, redis_url):
    """Markup and steering characters of anybody are shown, and are not part of the page."""
    hostile = make_settings(url=redis_url, providers=("a",), namespace="n")
    with served(hostile) as visitor:
        page = visitor.get("/signin?next=%22%3E%3Cscript%3Ealert(1)%3C/script%3E%E2%80%AE")
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    assert "\u202e" not in page.text


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:1"])
def test_a_strangers_name_gets_nothing(settings, host):
    """A request for a name that is not ours is refused, whatever it asks (DNS rebinding)."""
    with served(settings) as visitor:
        answer = visitor.get("/", Host=host)
    assert answer.status == 421
    assert "memorybus</title>" not in answer.text


@pytest.mark.parametrize("path", ["/nothing", "/providers/nobody", "/events/p00:1-1"])
def test_what_does_not_exist_is_a_404(make_settings, redis_url, path):
    """An address that names nothing gets a page with status 404, and the navigation."""
    with served(make_settings(url=redis_url, page_token=HASH)) as visitor:
        visitor.sign_in("ann")
        answer = visitor.get(path)
    assert (answer.status, "<nav" in answer.text) == (404, True)


def test_answers_bind_the_browser(settings):
    """No answer lets a script or a style run inline, or another site frame or read it."""
    with served(settings) as visitor:
        for path in ("/", "/livez", "/nothing", "/assets/static/page.js"):
            headers = visitor.get(path).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-frame-options"] == "DENY"
            assert headers["x-content-type-options"] == "nosniff"


def test_an_error_of_ours_quotes_nothing(settings, monkeypatch):
    """Whatever fails has a page that quotes nothing and binds the browser; the log is masked."""

    def fail(_: object) -> None:
        raise KeyError("redis://ann:secret@host says <b>hello</b>")

    monkeypatch.setattr("memorybus.health.verdict.BusStateCache.read", fail)
    said = io.StringIO()
    with served(settings) as visitor:
        log = logging.StreamHandler(said)
        logging.getLogger("uvicorn.error").addHandler(log)
        answer = visitor.get("/")
        wait_until(lambda: "KeyError" in said.getvalue(), "the log has it")
        logging.getLogger("uvicorn.error").removeHandler(log)
    assert answer.status == 500
    assert "memorybus</title>" in answer.text
    assert "hello" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "secret" not in said.getvalue()


def test_programs_ask_for_health(settings):
    """``/livez`` and ``/readyz`` say yes; ``/healthz`` has the verdict, 503 if it is critical."""
    with served(settings) as visitor:
        assert visitor.get("/livez").status == 200
        assert visitor.get("/readyz").status == 200
        found = visitor.get("/healthz")
        assert found.status == 503
        assert json.loads(found.text)["state"] == "CRITICAL"
        assert "memorybus_up 1.0" in visitor.get("/metrics").text


def test_without_redis_the_page_says_so(make_settings, private_redis):
    """Redis away: the page lives, is not ready, and tells what it tries to reach."""
    private_redis.kill()
    with served(make_settings(url=private_redis.url)) as visitor:
        assert visitor.get("/livez").status == 200
        assert visitor.get("/readyz").status == 503
        page = visitor.get("/")
    assert page.status == 200
    assert "MEMORYBUS CRITICAL" in page.text


def test_others_are_asked_who_they_are_before_they_see_anything(settings):
    """Nobody listens where others come without a token or a proxy."""
    with pytest.raises(ConfigError, match="page_token"):
        serving.run(settings, Address("0.0.0.0", 0), lambda *_: None)


PRIVATE = ("/events", "/tail", "/sessions", "/dead", "/recall", "/memories", "/history", "/workers")


@pytest.mark.parametrize("path", [*PRIVATE, "/providers/builtin", "/memories/parts", "/event/x"])
def test_strangers_see_no_memory(settings, path):
    """Without a token the page shows counts: no view of events, people or memories opens."""
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("My tuba is sold", "Noted.")
        assert bus.flush("logged", 10)
    with served(settings) as visitor:
        answer = visitor.get(path)
        assert answer.status in (303, 401, 404)
        assert "tuba" not in answer.text
        assert "tuba" not in visitor.get(path, Accept="text/event-stream").text


def test_strangers_read_no_error_of_a_backend(settings):
    """What a backend said may quote people: strangers see that it fails, and not its words."""
    said = Finding("failing", "critical", "mem0", "mem0 waits: the tuba is sold", "repair it")
    own = Finding("no_worker", "critical", "workers", "no worker is alive", "run it")
    verdict = Verdict("CRITICAL", 2, "MEMORYBUS CRITICAL - the tuba is sold", [said, own])
    shown = verdict.without_quotations()
    assert "tuba" not in str(shown)
    assert "mem0: failing" in shown.line
    assert "no worker is alive" in shown.line


def test_with_a_token_nobody_looks_without(make_settings, redis_url):
    """With a token, pages, JSON and metrics ask for it; programs show it as a bearer's."""
    with served(make_settings(url=redis_url, page_token=HASH)) as visitor:
        assert visitor.get("/").headers["location"] == "/signin?next=/"
        assert visitor.get("/past.json", Accept="*/*").status == 401
        assert visitor.get("/metrics", Accept="*/*").status == 401
        assert visitor.get("/livez").status == 200
        right = {"Accept": "*/*", "Authorization": f"Bearer {TOKEN}"}
        assert visitor.get("/metrics", **right).status == 200
        wrong = {"Accept": "*/*", "Authorization": "Bearer no"}
        assert visitor.get("/metrics", **wrong).status == 401


def test_signing_in_and_out(make_settings, redis_url):
    """The right token opens a session in a cookie that no script reads; signing out ends it."""
    with served(make_settings(url=redis_url, page_token=HASH)) as visitor:
        assert visitor.sign_in("ann", "wrong").status == 403
        cookie = visitor.sign_in("ann").headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert "ann" in visitor.get("/").text
        assert visitor.post("/signout", {"proof": visitor.proof()}).status == 303
        assert visitor.get("/").status == 303


def test_guessing_is_slowed_down(make_settings, redis_url):
    """After five wrong tokens from an address, not even the right one is looked at for a minute."""
    with served(make_settings(url=redis_url, page_token=HASH)) as visitor:
        for _ in range(5):
            assert visitor.sign_in("eve", "wrong").status == 403
        assert visitor.sign_in("eve").status == 429


def test_a_proxy_names_who_is_there(make_settings, redis_url):
    """A trusted proxy's header names a person; of anybody else it means nothing."""
    trusted = make_settings(url=redis_url, page_proxy_header="X-Forwarded-User")
    with served(trusted) as visitor:
        assert "ann" in visitor.get("/", X_Forwarded_User="ann").text
        assert visitor.get("/").status == 401
    other = make_settings(
        url=redis_url, page_proxy_header="X-Forwarded-User", page_proxies=("10.0.0.1",)
    )
    with served(other) as visitor:
        assert visitor.get("/", X_Forwarded_User="ann").status == 401
