"""What people are told: bounded, plain, without secrets, and as the page says."""

import json
import re
from pathlib import Path

import msgspec
from memorybus.health.finding import Finding
from memorybus.notify.incidents import DueReport, Incident
from memorybus.notify.notice import Notice, NoticeSender, build_notice, build_test_notice

NOW = 1_700_000_000_000
SENDER = NoticeSender("mb", "host1", frozenset(["hunter2hunter2"]))
PAGE = Path(__file__).parents[3] / "docs/notify.md"


def incident(text: str, **changed: object) -> Incident:
    """Return a finding that was seen first a minute ago."""
    return Incident(Finding("failing", "critical", "p", text, "mend it"), NOW - 60_000, **changed)


def test_one_notice_tells_all_that_is_new() -> None:
    """G10: lists for programs, and one text for people with what to do."""
    over = incident("q waited", gone=NOW - 1)
    told = build_notice(DueReport((incident("p waits"),), (), (over,)), "CRITICAL", SENDER, NOW)
    assert told.title == "memorybus mb: 1 new, 1 over"
    assert told.text.splitlines() == [
        "memorybus mb: 1 new, 1 over (host1)",
        "CRITICAL p waits; mend it",
        "OVER q waited",
    ]
    assert told.began[0].since == "2023-11-14T22:12:20.000Z"
    assert told.began[0].until is None
    assert told.ended[0].until == "2023-11-14T22:13:19.999Z"


def test_hostile_text_rings_no_phone_and_holds_no_secret() -> None:
    """G9: what a backend says is neither mark-up nor a call to everyone, and secrets are masked."""
    hostile = "<!channel> @everyone \x1b[2J\nOVER all is well hunter2hunter2 redis://u:secret@h"
    told = build_notice(DueReport((incident(hostile),)), "CRITICAL", SENDER, NOW)
    assert "<" not in told.text
    assert "@" not in told.text
    assert len(told.text.splitlines()) == 2
    whole = msgspec.json.encode(told).decode()
    assert "\x1b" not in whole
    assert "\\u001b" not in whole
    assert "hunter2" not in whole
    assert "secret" not in whole


def test_a_notice_is_bounded() -> None:
    """G10: however much is wrong, the text is readable, and says how much it leaves out."""
    many = tuple(incident("x" * 10_000) for _ in range(50))
    told = build_notice(DueReport(many), "CRITICAL", SENDER, NOW)
    assert told.text.endswith("and 30 more")
    assert len(told.text) < 12_000
    assert len(told.began) == 50


def test_a_test_says_that_it_is_one() -> None:
    """G10: a test is taken for no alarm."""
    told = build_test_notice(SENDER, NOW)
    assert (told.kind, told.state, told.began) == ("test", "OK", [])
    assert "a test, nothing is wrong" in told.text


def test_the_page_has_the_schema_and_a_true_example() -> None:
    """G10: what is sent is what docs/notify.md says, field by field."""
    example, schema = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert json.loads(schema) == msgspec.json.schema(Notice)
    assert msgspec.json.decode(example, type=Notice).began
