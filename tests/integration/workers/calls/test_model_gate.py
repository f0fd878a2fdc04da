"""The model client: any endpoint, an answer of a type, and budgets that hold over all workers."""

import json
import random
from datetime import UTC, datetime

import msgspec
import pytest
from helpers.services.chat_server import chat_server
from memorybus.clock import SYSTEM
from memorybus.config.model_settings import ModelSettings
from memorybus.config.settings import load, to_environ
from memorybus.errors import ConfigError, Permanent, Transient, Unavailable
from memorybus.health.model_status import find_model_trouble, read_model
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import TokenReservation
from memorybus.testing import FakeClock
from memorybus_providers.deriving.model import (
    BudgetSpent,
    ChatModel,
    ModelEndpoint,
    UnreadableAnswer,
    schema_of,
)
from memorybus_workers.calls.model_gate import ModelGate, Reservation, open_model
from redis import RedisError

KEY = "sk-of-this-test"
PERSON = "ann"


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact."""

    text: str
    sources: list[int]


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer that is asked for."""

    facts: list[Fact]


GOOD = json.dumps({"facts": [{"text": "Ann lives in Oslo", "sources": [1]}]})


@pytest.fixture
def server():
    """A scripted model."""
    with chat_server() as chat:
        chat.text = GOOD
        yield chat


@pytest.fixture
def open_it(redis_client, make_settings, server, monkeypatch):
    """Return a function that opens a model of this test's settings."""
    monkeypatch.setenv("MODEL_KEY", KEY)
    opened = []

    def open_it(clock=SYSTEM, **more) -> ChatModel:
        table = {"base_url": server.address, "name": "small", "api_key_env": "MODEL_KEY", **more}
        settings = make_settings(model=msgspec.convert(table, ModelSettings))
        model = open_model(settings, redis_client, clock, random.Random(1))
        assert model is not None
        opened.append(model)
        return model

    yield open_it
    for model in opened:
        model.close()


def ask(model: ChatModel, person: str = PERSON) -> Facts:
    """Ask for facts."""
    return model.ask(Facts, "Derive facts.", "Ann: I live in Oslo.", person).value


def account(redis_client, make_settings) -> dict[str, str]:
    """Return what Redis has of the model."""
    fields = redis_client.hgetall(Keys(make_settings().namespace).model[0])
    return {name.decode(): value.decode() for name, value in fields.items()}


def test_an_answer_has_its_type_its_tokens_and_its_cost(open_it, server):
    """The service gets model, schema, bound and key, and the answer tells what it cost."""
    model = open_it(prices={"small": (2.0, 10.0)}, answer_tokens=300)
    answer = model.ask(Facts, "Derive facts.", "Ann: I live in Oslo.", PERSON)
    assert answer.value == Facts([Fact("Ann lives in Oslo", [1])])
    assert (answer.model, answer.tokens_in, answer.tokens_out) == ("small", 8, len(GOOD) // 4)
    assert answer.cost == pytest.approx((8 * 2 + len(GOOD) // 4 * 10) / 1e6)
    body = server.questions[0]
    assert server.headers["Authorization"] == f"Bearer {KEY}"
    assert body["max_tokens"] == 300
    assert body["response_format"]["json_schema"]["schema"] == schema_of(Facts)


def test_the_root_of_a_schema_is_an_object():
    """Services refuse a reference at the root."""
    schema = schema_of(Facts)
    assert schema["type"] == "object"
    assert schema["$defs"]["Fact"]["additionalProperties"] is False


def test_an_answer_is_repaired_once(open_it, server):
    """What does not fit goes back with the schema; what fits then is the answer."""
    texts = ["Once upon a time " * 500, GOOD]
    server.script = lambda _: texts.pop(0)
    answer = open_it().ask(Facts, "Derive facts.", "Ann: hi", PERSON)
    assert answer.value.facts
    repair = server.questions[1]["messages"]
    assert [message["role"] for message in repair] == ["system", "user", "assistant", "user"]
    assert len(repair[2]["content"]) <= 4_000
    assert "additionalProperties" in repair[3]["content"]
    assert answer.tokens_in == sum(
        sum(len(message["content"]) for message in body["messages"]) // 4
        for body in server.questions
    )


@pytest.mark.parametrize(
    "text",
    ["", "Once upon a time", "{", '{"facts": "none"}', '{"facts": [], "run": "rm"}'],
)
def test_an_answer_that_never_fits_is_counted_and_refused(
    open_it, server, redis_client, make_settings, text
):
    """A novel instead of JSON costs two calls, and no more."""
    server.text = text
    with pytest.raises(UnreadableAnswer):
        ask(open_it())
    assert server.asked == 2
    assert account(redis_client, make_settings)["unreadable"] == "1"


def test_words_around_the_object_do_no_harm(open_it, server):
    """Some models put marks around their JSON: no call is spent on that."""
    server.text = f"Here you are:\n```json\n{GOOD}\n```"
    assert ask(open_it()).facts
    assert server.asked == 1


@pytest.mark.parametrize(
    ("statuses", "asked", "error"),
    [
        ([500], 2, None),
        ([500, 500], 2, Transient),
        ([429], 1, Unavailable),
        ([401], 1, Unavailable),
        ([404], 1, Unavailable),
        ([503], 1, Unavailable),
        ([302], 1, Unavailable),
        ([400], 1, Permanent),
    ],
)
def test_what_a_status_means(open_it, server, statuses, asked, error):
    """One call that failed is tried once more; a service that is down is not; no key is shown."""
    server.statuses = list(statuses)
    model = open_it()
    if error is None:
        assert ask(model).facts
    else:
        with pytest.raises(error) as raised:
            ask(model)
        assert KEY not in str(raised.value)
    assert server.asked == asked


def test_a_service_that_is_down_is_asked_seldom(open_it, server, redis_client, make_settings):
    """The breaker holds calls back, lets one try later, and the account tells why."""
    clock = FakeClock()
    model = open_it(clock)
    server.status = 503
    for _ in range(5):
        with pytest.raises(Unavailable):
            ask(model)
    assert server.asked == 1
    assert "answers 503" in account(redis_client, make_settings)["why"]
    server.status = 200
    clock.advance(60)
    assert ask(model).facts
    assert "why" not in account(redis_client, make_settings)


def test_no_server_at_all_is_unavailable(open_it):
    """A refused connection uses no tokens."""
    with pytest.raises(Unavailable):
        ask(open_it(base_url="http://127.0.0.1:9/v1"))


@pytest.mark.parametrize("drips", [False, True])
def test_a_slow_service_is_given_up(open_it, server, redis_client, make_settings, drips):
    """Neither silence nor an answer without an end holds a worker; its tokens stay reserved."""
    server.drips = drips
    if not drips:
        server.free.clear()
    with pytest.raises(Transient):
        ask(open_it(timeout=0.3, answer_tokens=1_000))
    assert server.asked == 2
    assert int(account(redis_client, make_settings)["hour:tokens"]) > 2_000


@pytest.mark.parametrize("limit", ["calls_per_hour", "calls_per_month", "calls_per_person"])
def test_calls_are_bounded_over_all_workers(open_it, server, limit):
    """Two clients together make no more calls than the limit allows; nothing is sent beyond it."""
    first, second = open_it(**{limit: 3}), open_it(**{limit: 3})
    for model in (first, second, first):
        assert ask(model).facts
    for model in (first, second):
        with pytest.raises(BudgetSpent, match=limit):
            ask(model)
    assert server.asked == 3


@pytest.mark.parametrize("limit", ["tokens_per_hour", "tokens_per_month", "tokens_per_person"])
def test_tokens_are_reserved_before_a_call_and_settled_after(open_it, server, limit):
    """The bound holds for what a call may use at most; what it did not use is given back."""
    probe = open_it(answer_tokens=100)
    used = probe.ask(Facts, "Derive facts.", "Ann: I live in Oslo.", "eve")
    spent = used.tokens_in + used.tokens_out
    needed = 100 + len(json.dumps(schema_of(Facts), separators=(",", ":"))) + 33 + 32
    before = 0 if limit == "tokens_per_person" else spent
    model = open_it(answer_tokens=100, **{limit: before + spent + needed})
    assert ask(model).facts
    assert ask(model).facts
    with pytest.raises(BudgetSpent, match=limit):
        ask(model)
    assert server.asked == 3


def test_a_lock_that_cannot_be_read_ends_no_probe(redis_client, make_settings):
    """While Redis is away the model is unavailable; once it is back, the service is probed."""
    clock, away = FakeClock(), [True]

    def keep() -> bool:
        if away:
            raise RedisError("Redis is away")
        return True

    table = ModelSettings(base_url="http://127.0.0.1:9/v1", name="small")
    keys = Keys(make_settings().namespace)
    gate = ModelGate(redis_client, keys, table, clock, random.Random(1), keep)
    gate.settle(Reservation(PERSON, 0, TokenReservation(0)), 0, Unavailable("down"))
    clock.advance(60)
    with pytest.raises(Unavailable, match="Redis is away"):
        gate.reserve(PERSON, 10)
    away.clear()
    assert gate.reserve(PERSON, 10).tokens == 10


def test_one_persons_budget_is_not_anothers(open_it):
    """Who has spent their month keeps nobody else from being derived."""
    model = open_it(calls_per_person=1)
    assert ask(model, "ann").facts
    with pytest.raises(BudgetSpent, match="calls_per_person"):
        ask(model, "ann")
    assert ask(model, "bob").facts


@pytest.mark.parametrize(
    ("moved", "allowed"), [(1, False), (-1, True)], ids=["clock set back", "next hour"]
)
def test_a_window_ends_with_time_and_never_before(
    open_it, redis_client, make_settings, moved, allowed
):
    """The next hour allows calls again; a clock that is set back does not."""
    model = open_it(calls_per_hour=1)
    assert ask(model).facts
    redis_client.hincrby(Keys(make_settings().namespace).model[0], "hour", moved)
    if allowed:
        assert ask(model).facts
    with pytest.raises(BudgetSpent):
        ask(model)


def test_months_are_those_of_the_calendar(open_it, redis_client, make_settings):
    """A window of a month has the number of years and months that its date has."""
    ask(open_it())
    seconds, _ = redis_client.time()
    today = datetime.fromtimestamp(seconds, UTC)
    months = today.year * 12 + today.month - 3
    assert account(redis_client, make_settings)["month"] == str(months)


@pytest.mark.parametrize(
    ("usage", "left"),
    [
        (None, True),
        ({"prompt_tokens": -9_000, "completion_tokens": -9}, False),
        ({"prompt_tokens": 10**30, "completion_tokens": 9}, True),
    ],
)
def test_a_service_that_counts_wrongly_makes_no_room(
    open_it, server, redis_client, make_settings, usage, left
):
    """A missing count leaves what was reserved; none counts below zero, or beyond a bound."""
    server.usage = usage
    ask(open_it(answer_tokens=100))
    assert (int(account(redis_client, make_settings)["hour:tokens"]) > 100) is left
    assert int(account(redis_client, make_settings)["hour:tokens"]) >= 0


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"base_url": "ftp://x", "name": "m"}, "http://"),
        ({"base_url": "http://x"}, "together"),
        ({"name": "m"}, "together"),
        ({"calls_per_hour": -1}, "calls_per_hour"),
        ({"colour": 1}, "colour"),
        ({"prices": {"m": [float("nan"), 0.0]}}, "prices"),
        ({"prices": {"m": [0.0, float("inf")]}}, "prices"),
        ({"prices": {"m": [-1.0, 0.0]}}, "prices"),
        ({"api_key_env": "A", "api_key_file": "B"}, "not both"),
    ],
)
def test_impossible_settings_are_refused(table, message):
    """The error names the setting and the fault."""
    with pytest.raises(ConfigError, match=message):
        load(environ={}, model=table)


def test_a_worker_gets_the_table_by_its_environment(tmp_path):
    """What the file has reaches a child process unchanged, without the key itself."""
    file = tmp_path / "memorybus.toml"
    file.write_text(
        '[model]\nbase_url = "http://x/v1"\nname = "m"\napi_key_env = "K"\n'
        "prices = {m = [0.5, 1.5]}\n"
    )
    settings = load(environ={}, file=file)
    again = load(environ=to_environ(settings, {}), directory=tmp_path / "none")
    assert again.model == settings.model
    assert (
        msgspec.convert(settings.model, ModelEndpoint, from_attributes=True).cost(
            "m", 1_000_000, 2_000_000
        )
        == 3.5
    )


def test_a_key_that_is_missing_is_named(open_it):
    """The variable is named, which this process lacks."""
    with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
        open_it(api_key_env="NO_SUCH_KEY")


def findings(redis_client, settings) -> list[tuple[str, str]]:
    """Return what `status` finds wrong with the model."""
    status = read_model(redis_client, Keys(settings.namespace), settings.model)
    assert KEY not in repr(status)
    return [(finding.code, finding.subject) for finding in find_model_trouble(status)]


def test_the_status_shows_use_failures_and_limits(open_it, server, redis_client, make_settings):
    """G10: an operator sees what was used, since when the model fails, and which limit holds."""
    table = {"base_url": server.address, "name": "small", "calls_per_hour": 2}
    settings = make_settings(model=msgspec.convert(table, ModelSettings))
    assert findings(redis_client, settings) == []
    model = open_it(calls_per_hour=2)
    ask(model)
    status = read_model(redis_client, Keys(settings.namespace), settings.model)
    assert (status.calls_this_hour, status.calls_this_month) == (1, 1)
    assert status.tokens_this_hour == status.tokens_this_month == 8 + len(GOOD) // 4
    server.status = 503
    with pytest.raises(Unavailable):
        ask(model)
    assert findings(redis_client, settings) == [("model", "small")]
    server.status = 200
    with pytest.raises(BudgetSpent):
        ask(open_it(calls_per_hour=2))
    assert ("model", "calls_per_hour") in findings(redis_client, settings)
    redis_client.hincrby(Keys(settings.namespace).model[0], "hour", -1)  # as the next hour does
    assert findings(redis_client, settings) == [("model", "small")]
    ask(open_it(calls_per_hour=2))
    assert findings(redis_client, settings) == []
    assert read_model(redis_client, Keys(settings.namespace), ModelSettings()) is None
