"""``memorybus ingest --from`` an address: another memory is read where it runs, and only read."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from helpers.services.fake_http import FailingServer, FakeHandler, serving
from helpers.services.fake_mem0 import FakeMem0, fake_mem0
from helpers.services.faulty_http import Fault
from helpers.services.honcho_server import Conclusion, HonchoServer, Said
from helpers.services.mentisdb_server import MentisDbServer
from helpers.stories.published import envelopes
from memorybus.events import MemoryWritten, TurnCompleted
from memorybus_console.cli import main
from memorybus_console.operations.ingest.foreign import service

SECRET = "s3cret-key"


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Run ``ingest --from`` with --json; return its exit code and what it says; no key is shown."""
    code = main(["ingest", "--from", *words, "--json"])
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    return code, json.loads(said.out)


@pytest.fixture(name="honcho")
def _honcho() -> Iterator[HonchoServer]:
    """Serve a workspace with two sessions, one of more than a page."""
    with serving(HonchoServer()) as server:
        server.metadata = {("w",): {}, ("w", "long"): {}, ("w", "a/b"): {}, ("v", "other"): {}}
        for n in range(250):
            peer = "hermes" if n % 2 else "ann"
            at = f"2026-06-01T12:{n // 60:02}:{n % 60:02}Z"
            server.messages.append(Said("w", "long", peer, f"line {n}", {}, at, True, f"m{n}"))
        server.messages.append(Said("w", "a/b", "bob", "hello", {}, id="x"))
        server.messages.append(Said("v", "other", "eve", "elsewhere", {}, id="y"))
        server.conclusions.append(Conclusion("w", "long", "hermes", "ann", "Ann counts", "c1"))
        yield server


def test_a_honcho_workspace_is_read_whole_and_once(ready, honcho, capsys, monkeypatch):
    """G2: every page of every session of this workspace, in order; a second run adds nothing."""
    monkeypatch.setenv("HONCHO_API_KEY", SECRET)
    where = (f"{honcho.url}/v3/workspaces/w", "--agent", "hermes")
    code, did = told(capsys, "honcho", *where)
    found = envelopes(ready)
    turns = [one for one in found if isinstance(one.event, TurnCompleted)]
    anns = [one.event for one in turns if one.scope.user == "ann"]
    assert (code, did["new_events"]) == (0, len(found))
    assert [one.user for one in anns] == [f"line {n}" for n in range(0, 250, 2)]
    assert [one.session.id for one in turns if one.scope.user == "bob"] == ["honcho:a/b"]
    assert [one.event.content for one in found if isinstance(one.event, MemoryWritten)] == [
        "Ann counts"
    ]
    assert set(honcho.keys) == {f"Bearer {SECRET}"}
    assert all(path.endswith("/list") for _, path in honcho.asked)
    assert told(capsys, "honcho", *where)[1]["new_events"] == 0


@pytest.mark.parametrize("kind", [401, 500, "lose", "half"])
def test_a_source_that_fails_brings_nothing(kind, ready, honcho, capsys):
    """What is read half is not published; the reason is told, and the next run goes through."""
    honcho.faults.append(Fault("conclusions/list", kind))
    where = (f"{honcho.url}/v3/workspaces/w", "--agent", "hermes")
    code, did = told(capsys, "honcho", *where)
    assert (code, did["files"], len(envelopes(ready))) == (1, 0, 0)
    assert "/conclusions/list" in did["refused"][0]["why"]
    assert told(capsys, "honcho", *where)[0] == 0


class FakeBank(FailingServer):
    """A fake Hindsight with one bank, by the documented page of `list_memories`.

    Attributes:
        count: how many memories it holds.
        answer: bytes that are answered instead of a page; None for pages.
        moved: whether it redirects.
    """

    def __init__(self) -> None:
        super().__init__(_Bank)
        self.count = 230
        self.answer: bytes | None = None
        self.moved = False


class _Bank(FakeHandler):
    server: FakeBank

    def do_GET(self) -> None:
        """Answer a page of memories."""
        if self.server.moved:
            self.send_response(307)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.server.answer is not None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(self.server.answer)))
            self.end_headers()
            self.wfile.write(self.server.answer)
            return
        asked = dict(parse_qsl(urlsplit(self.path).query))
        limit, offset = int(asked["limit"]), int(asked["offset"])
        numbers = range(offset, min(offset + limit, self.server.count))
        items = [{"id": f"u{n}", "text": f"fact {n}", "fact_type": "world"} for n in numbers]
        total = self.server.count
        self.tell(200, {"items": items, "total": total, "limit": limit, "offset": offset})


@pytest.fixture(name="bank")
def _bank() -> Iterator[FakeBank]:
    with serving(FakeBank()) as server:
        yield server


def test_a_hindsight_bank_is_read_page_by_page(ready, bank, capsys):
    """All pages are read, and a bank that has none is no error."""
    where = f"{bank.url}/v1/default/banks/ann/"
    code, did = told(capsys, "hindsight", where, "--user", "ann")
    assert (code, did["events"], did["new_events"]) == (0, 230, 230)
    assert {one.scope.user for one in envelopes(ready)} == {"ann"}
    bank.count = 0
    assert told(capsys, "hindsight", where)[0] == 0


@pytest.mark.parametrize(
    ("answer", "why"),
    [(b"{oops", "cannot be read"), (b"[]", "not a JSON object"), (b"{}", "without 'items'")],
)
def test_what_is_no_answer_is_refused(answer, why, ready, bank, capsys):
    """Another service at that address is told as such."""
    bank.answer = answer
    code, did = told(capsys, "hindsight", bank.url)
    assert code == 1
    assert why in did["refused"][0]["why"]


def test_a_key_goes_nowhere_else(ready, bank, capsys, monkeypatch):
    """A redirect is not followed, a password in an address is refused, an answer has a bound."""
    monkeypatch.setenv("HINDSIGHT_API_KEY", SECRET)
    bank.moved = True
    assert "redirects (307)" in told(capsys, "hindsight", bank.url)[1]["refused"][0]["why"]
    bank.moved = False
    monkeypatch.setattr(service, "LARGEST_ANSWER", 100)
    assert "more than 100 bytes" in told(capsys, "hindsight", bank.url)[1]["refused"][0]["why"]
    refusal = told(capsys, "hindsight", "http://ann:pw@127.0.0.1:1/")[1]["refused"][0]
    assert "must not contain a user or password" in refusal["why"]
    assert "pw@" not in refusal["what"]
    assert "imported from files" in told(capsys, "letta", bank.url)[1]["refused"][0]["why"]


def mem0_rows(server: FakeMem0, count: int) -> None:
    """Let a server hold memories of ann, and one of bob."""
    for n in range(count):
        row = {"id": f"r{n}", "memory": f"fact {n}", "user_id": "ann", "metadata": {}}
        server.rows[row["id"]] = row
    server.rows["b"] = {"id": "b", "memory": "other", "user_id": "bob", "metadata": {}}


def test_a_mem0_server_is_asked_for_one_owners_memories(ready, capsys):
    """The address says whose they are; a server that cuts its list off is told as such."""
    with fake_mem0() as server:
        mem0_rows(server, 30)
        code, did = told(capsys, "mem0", f"{server.url}?user_id=ann")
        assert (code, did["new_events"]) == (0, 30)
        assert {one.scope.user for one in envelopes(ready)} == {"ann"}
        server.shown = 20
        refusal = told(capsys, "mem0", f"{server.url}?user_id=ann")[1]["refused"][0]
        assert "shows no more at once" in refusal["why"]
        assert "say whose" in told(capsys, "mem0", server.url)[1]["refused"][0]["why"]


@pytest.mark.parametrize("count", [0, 1, 100, 101, 250])
def test_a_mentisdb_chain_is_read_to_its_end(count, ready, capsys):
    """Every thought of the chain comes once, however its length fits the pages."""
    with serving(MentisDbServer()) as server:
        server.chains["k"] = [
            {"id": f"t{n}", "index": n, "content": f"thought {n}", "agent_id": "a"}
            for n in range(count)
        ]
        code, did = told(capsys, "mentisdb", f"{server.url}?chain_key=k")
        assert (code, did["events"]) == (0, count)
        told_texts = [one.event.content for one in envelopes(ready)]
        assert sorted(told_texts) == sorted(f"thought {n}" for n in range(count))
        assert "say which chain" in told(capsys, "mentisdb", server.url)[1]["refused"][0]["why"]
