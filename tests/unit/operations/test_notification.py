"""When people are notified of a verdict, and what they read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.health.finding import Finding
from memorybus.health.verdict import Verdict
from memorybus_console.operations.notification import Notifier, VerdictChange, describe_verdict

WELL = Verdict("OK", 0, "MEMORYBUS OK - 1 worker")


def critical(*subjects: str, text: str = "no worker is alive") -> Verdict:
    """Return a verdict with a finding for each subject."""
    findings = [Finding("no_worker", "critical", name, text, "run: x") for name in subjects]
    return Verdict("CRITICAL", 2, f"MEMORYBUS CRITICAL - {text}", findings)


@given(st.lists(st.sampled_from([WELL, critical("a"), critical("b"), critical("a", "b")])))
def test_only_a_change_that_two_looks_agree_on_is_news(looks):
    """People are notified when two looks in a row agree and differ from what they were sent."""
    change, sent, last = VerdictChange(), WELL, WELL
    for verdict in looks:
        expected = verdict == last and verdict != sent
        assert change.is_news(verdict) == expected
        if expected:
            change.note_sent(verdict)
            sent = verdict
        last = verdict


def test_a_message_that_was_not_delivered_is_due_again():
    """A change stays news until somebody took it."""
    change = VerdictChange()
    assert [change.is_news(critical("a")) for _ in range(3)] == [False, True, True]


def test_figures_in_a_text_are_no_news():
    """A backlog that grows from look to look is one finding."""
    change = VerdictChange()
    looks = [critical("a", text=f"{number} events wait") for number in range(3)]
    assert [change.is_news(verdict) for verdict in looks] == [False, True, True]


def test_a_message_calls_nobody_and_holds_no_secret():
    """Hostile text in a finding mentions no channel, breaks no line, and secrets are masked."""
    text = describe_verdict(
        critical("a", text="<!channel> @everyone\nkey s3cr3t-value"), {"s3cr3t-value"}
    )
    assert "\n" not in text
    assert not {"<", ">", "@"} & set(text)
    assert "s3cr3t-value" not in text
    assert "run: x" in text


def test_a_message_names_twenty_findings_and_counts_the_rest():
    """A message has a bound (G10)."""
    lines = describe_verdict(critical(*map(str, range(25)))).splitlines()
    assert len(lines) == 21
    assert lines[-1].startswith("and 5 more")


@pytest.mark.parametrize(
    ("target", "message"),
    [("NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE"), ("nosuchservice://a-secret", "cannot read")],
)
@pytest.mark.slow(reason="loads Apprise")
def test_an_impossible_address_is_refused_at_the_start(target, message):
    """An address that Apprise does not know is an error now, without the address in it."""
    with pytest.raises(ConfigError, match=message) as refused:
        Notifier(Settings(), [target])
    assert "a-secret" not in str(refused.value)
