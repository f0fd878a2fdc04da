"""What a turn took: Hermes's own totals, before and after."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.hermes.hermes_plugin import Host, hermes_host, talk
from helpers.hermes.hermes_state import HermesState
from memorybus.events import Delegated, TurnCompleted, TurnStarted
from memorybus_hermes.plugin.provider import HermesMemory
from memorybus_hermes.plugin.usage import TurnUsage, UsageMeter, turn_start_details
from memorybus_hermes.transcripts.state_db import SessionUsage, read_usage


@pytest.fixture(name="state")
def _state(tmp_path: Path) -> Iterator[HermesState]:
    with HermesState(tmp_path / "home") as state:
        state.session("s")
        yield state


@pytest.fixture(name="meter")
def _meter(state: HermesState) -> UsageMeter:
    return UsageMeter(state.path)


def test_a_turn_has_its_own_share_of_the_total(state, meter):
    """Each turn carries what was counted since it started; a turn of several calls their sum."""
    state.called("s", 1_000, 50)
    for tokens in (10, 20):
        meter.begins("s", "hello", "")
        state.called("s", tokens, 1, cached=100)
        state.called("s", tokens, 1)
        assert meter.turn("s", "hello") == TurnUsage("m", 2 * tokens + 100, 2)


def test_a_turn_has_its_own_cost(state, meter):
    """What was billed counts, else what is estimated; titles and other turns do not."""
    state.called("s", 1_000, 50, cost=0.1)
    meter.begins("s", "one", "")
    state.called("s", 10, 1, cost=0.2)
    state.called("s", 10, 1, model="billed", cost=0.5, actual=0.4)
    state.called("s", 9, 9, task="title_generation", cost=9.0)
    assert meter.turn("s", "one").cost == 0.6
    meter.begins("s", "free", "")
    state.called("s", 10, 1, cost=0.0)
    assert meter.turn("s", "free").cost == 0.0


def test_a_cost_that_is_not_known_is_not_guessed(state, meter):
    """A turn without a call, with one of unknown price, or with a total counted anew has none."""
    state.called("s", 1_000, 50, cost=0.1)
    meter.begins("s", "nothing", "")
    assert meter.turn("s", "nothing").cost == -1.0
    for model in ("m", "priceless"):  # with a known price before, and without
        meter.begins("s", "hello", "")
        state.called("s", 10, 1, model="other", cost=0.2)
        state.called("s", 10, 1, model=model)
        assert meter.turn("s", "hello") == TurnUsage("priceless" if model != "m" else "m", 20, 2)
    meter.begins("s", "again", "")
    state.called("s", 10, 1, cost=0.3)
    assert meter.turn("s", "again").cost == 0.3
    meter.begins("s", "anew", "")
    state.called("s", 10, 1, cost=0.3)
    state.db.execute("update session_model_usage set estimated_cost_usd = 0")
    assert meter.turn("s", "anew").cost == -1.0


def test_what_another_process_said_meanwhile_is_not_this_turn_s(state, meter):
    """The total before is read when the turn starts: a session is gone on with elsewhere, too."""
    meter.begins("s", "one", "")
    state.called("s", 5, 1)
    meter.turn("s", "one")
    state.called("s", 700, 70)
    meter.begins("s", "two", "")
    state.called("s", 6, 2)
    assert meter.turn("s", "two") == TurnUsage("m", 6, 2)


def test_a_turn_that_is_told_of_late_ends_where_the_next_one_began(state, meter):
    """Hermes tells of a turn behind slow work: what the next one took already is not counted."""
    meter.begins("s", "one", "")
    state.called("s", 5, 1)
    meter.begins("s", "two", "")
    state.called("s", 6, 2)
    assert meter.turn("s", "one") == TurnUsage("m", 5, 1)
    state.called("s", 6, 2)
    assert meter.turn("s", "two") == TurnUsage("m", 12, 4)


def test_an_interrupted_turn_shifts_nothing(state, meter):
    """A turn that is never told of keeps its tokens: the next one has its own."""
    meter.begins("s", "interrupted", "")
    state.called("s", 50, 10)
    for text in ("two", "three"):
        meter.begins("s", text, "")
        state.called("s", 6, 2)
        assert meter.turn("s", text) == TurnUsage("m", 6, 2)


def test_a_turn_that_goes_on_under_another_id_is_whole(state, meter):
    """A compression in the middle of a turn may make another session: its parts are added up."""
    state.called("s", 1_000, 50, cost=0.7)
    meter.begins("s", "hello", "")
    state.called("s", 10, 1, cost=0.1)
    meter.moved("s", "t")
    state.session("t")
    state.called("t", 5, 2, cost=0.2)
    assert meter.turn("t", "hello") == TurnUsage("m", 15, 3, cost=0.3)
    meter.moved("t", "u")
    assert meter.turn("u", "another") == TurnUsage()


def test_the_model_is_the_one_that_answered(state, meter):
    """After a change of the model within a session; and titles and summaries are no turn's."""
    state.called("s", 1, 1, model="first")
    meter.begins("s", "hello", "")
    state.called("s", 2, 2, model="second")
    state.called("s", 900, 90, model="cheap", task="title_generation")
    assert meter.turn("s", "hello") == TurnUsage("second", 2, 2)
    meter.begins("s", "hello", "as the hook says")
    assert meter.turn("s", "hello").model == "as the hook says"


def test_a_total_that_cannot_be_read_is_not_waited_for(state, tmp_path):
    """G9: a locked, damaged, old or missing file: the turn goes without, at once."""
    state.db.execute("pragma journal_mode = delete")
    state.db.execute("begin exclusive")
    assert read_usage(state.path, "s") is None
    state.db.execute("rollback")
    assert read_usage(state.path, "s") == SessionUsage("m")
    damaged, old = tmp_path / "damaged.db", tmp_path / "old.db"
    damaged.write_bytes(b"no database at all" * 100)
    db = sqlite3.connect(old)
    db.execute("create table sessions(id text, model text)")
    db.close()
    for path in (damaged, old, tmp_path / "missing.db"):
        assert read_usage(path, "s") is None
    assert read_usage(state.path, "\ud800") is None
    assert not (tmp_path / "missing.db").exists()


def test_a_turn_whose_start_is_unknown_has_no_tokens(state, meter):
    """A session's total never passes for a turn's, nor does a total that was counted anew."""
    state.called("s", 1_000, 50)
    assert meter.turn("s", "hello") == TurnUsage("m")
    meter.begins("s", "hello", "")
    state.db.execute("update session_model_usage set input_tokens = 3, output_tokens = 3")
    assert meter.turn("s", "hello") == TurnUsage("m")


ODD: tuple[Any, ...] = (None, True, -1, 1 << 70, "many", [], b"x", 2.5)


@pytest.mark.parametrize("odd", ODD)
def test_of_what_a_hook_says_only_what_has_its_form_is_taken(odd):
    """Hostile or foreign details are left out one by one; names are bounded (G10)."""
    told = {"model": "m" * 999, "platform": b"x", "remaining_tokens": odd, "tool_count": 3, "z": 1}
    assert turn_start_details(told) == {"model": "m" * 200, "tool_count": 3}


def events(host: Host, kind: type) -> list[Any]:
    """Return the events of a kind that were published."""
    return [e.event for e in host.bus.accepted.values() if isinstance(e.event, kind)]


def have_turn(memory: HermesMemory, state: HermesState, session: str, text: str) -> None:
    """Have a turn of one call of the model."""
    memory.on_turn_start(1, text)
    state.called(session, 70, 7, cost=0.25)
    memory.sync_turn(text, text.upper(), session_id=session, messages=talk(text))


def test_the_log_knows_what_a_live_turn_took():
    """The plugin's turns carry model and tokens, in each session those of that session."""
    with hermes_host() as host, HermesState(host.home) as state:
        state.session("s1")
        state.called("s1", 1_000, 100)
        memory = host.instance("s1")
        have_turn(memory, state, "s1", "hello")
        memory.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
        state.session("s2")
        have_turn(memory, state, "s2", "again")
        found = events(host, TurnCompleted)
    assert [(e.model, e.tokens_in, e.tokens_out, e.cost) for e in found] == [("m", 70, 7, 0.25)] * 2


def test_the_log_knows_what_a_compressed_turn_took():
    """The switch of a compression in the middle of a turn takes what was counted along."""
    with hermes_host() as host, HermesState(host.home) as state:
        state.session("s1")
        memory = host.instance("s1")
        memory.on_turn_start(1, "hello")
        state.called("s1", 70, 7)
        memory.on_pre_compress(talk("hello"))
        memory.on_session_switch("s2", parent_session_id="s1", reason="compression")
        state.session("s2", parent="s1")
        state.called("s2", 30, 3)
        memory.sync_turn("hello", "HELLO", session_id="s2", messages=talk("hello"))
        (found,) = events(host, TurnCompleted)
    assert (found.tokens_in, found.tokens_out) == (100, 10)


def test_the_log_knows_what_a_sub_agent_took():
    """A delegation carries its child's model, tokens and calls of tools, or what the hook says."""
    with hermes_host() as host, HermesState(host.home) as state:
        state.session("child", config={"_delegate_from": "s1"})
        state.called("child", 40, 4, model="small")
        state.db.execute("update sessions set tool_call_count = 2 where id = 'child'")
        memory = host.instance("s1")
        memory.on_delegation("dig", "dug", child_session_id="child")
        said = {"model": "large", "tokens": {"input": 9, "output": 1}, "tool_count": 0}
        memory.on_delegation("find", "found", child_session_id="unknown", **said)
        first, second = events(host, Delegated)
    assert (first.model, first.tokens_in, first.tokens_out, first.tool_count) == ("small", 40, 4, 2)
    known = (second.model, second.tokens_in, second.tokens_out, second.tool_count)
    assert known == ("large", 9, 1, 0)


def test_the_log_knows_what_the_start_of_a_turn_was_told_with():
    """Model, platform, remaining tokens and number of tools, where the host says them."""
    with hermes_host() as host:
        memory = host.instance("s1")
        told = {"model": "m-1", "platform": "cli", "remaining_tokens": 900, "tool_count": 12}
        memory.on_turn_start(3, "hello", **told, author_id="x")
        memory.on_turn_start(4, "again")
        first, second = events(host, TurnStarted)
    assert first == TurnStarted(number=3, message="hello", **told)
    assert second == TurnStarted(number=4, message="again")
