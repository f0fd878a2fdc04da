"""What providers of remote services share: failures, rate limits, keys, names, texts."""

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.errors import ConfigError, Permanent, Transient, Unavailable
from memorybus.testing import FakeClock
from memorybus_providers.base import ProviderConfig
from memorybus_providers.remote.http import (
    DEFAULT_PAUSE,
    LONGEST_PAUSE,
    RateLimit,
    error_for_connection,
    error_for_status,
    error_for_unreadable,
    quote,
    retry_after_seconds,
)
from memorybus_providers.remote.options import api_key
from memorybus_providers.remote.texts import (
    LONGEST_QUESTION,
    MAX_NAME_CHARS,
    clean_question,
    name_of,
    sendable,
    split_text,
)


def config(tmp_path: Path, **options: Any) -> ProviderConfig:
    """Return an instance's configuration."""
    return ProviderConfig(name="there", home=tmp_path, options=options)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, Permanent) for status in (400, 413, 422)),
        *((status, Transient) for status in (408, 409, 423, 425, 500)),
        *((status, Unavailable) for status in (301, 401, 402, 403, 404, 405, 418, 429)),
        *((status, Unavailable) for status in (501, 502, 503, 504, 529)),
    ],
)
def test_a_status_says_whose_fault_it_is(status, kind):
    """Only what is about the event itself parks it; what is about the service holds all back."""
    error = error_for_status(status, "why")
    assert type(error) is kind
    assert str(error) == "why"


def wrapped(cause: BaseException) -> BaseException:
    """Return an error of a client library, two layers above its cause."""
    inner, outer = RuntimeError("pool"), RuntimeError("client")
    inner.__cause__, outer.__context__ = cause, inner
    return outer


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (ConnectionRefusedError(), Unavailable),
        (socket.gaierror(), Unavailable),
        (ssl.SSLCertVerificationError(), Unavailable),
        (ConnectionResetError(), Transient),
        (TimeoutError(), Transient),
        (ValueError("half a body"), Transient),
    ],
)
def test_what_was_never_sent_is_told_from_what_was_not_answered(cause, kind):
    """A refused connection holds all back; a lost answer leaves the event in doubt."""
    assert type(error_for_connection(wrapped(cause), "why")) is kind


def test_an_answer_that_no_client_reads_may_be_better_next_time():
    """The error names the service and the kind of failure, not the answer."""
    error = error_for_unreadable(KeyError("secret"), "There")
    assert type(error) is Transient
    assert str(error) == "There sent an answer that its client cannot read: KeyError"


def test_errors_in_a_ring_end():
    """Causes that lead back to themselves are looked at once."""
    error = wrapped(ValueError())
    error.__cause__ = error
    assert type(error_for_connection(error, "why")) is Transient


def test_what_a_service_says_is_shown_without_its_key():
    """An error shows one bounded line, in which no secret stands."""
    said = quote("no key sk-1\nis valid " + "x" * 1_000, "sk-1", "")
    assert said.startswith("no key *** is valid x")
    assert len(said) == 200


def test_a_rate_limit_refuses_calls_until_it_is_over():
    """For as long as a service asked nothing is sent; an earlier end does not shorten it."""
    clock = FakeClock()
    limit = RateLimit(clock)
    limit.check("it")
    limit.note_pause(7.0)
    limit.note_pause(2.0)
    with pytest.raises(Unavailable, match=r"it asked for a pause: no call for 7\.0 s more"):
        limit.check("it")
    clock.advance(7.0)
    limit.check("it")


@pytest.mark.parametrize(
    ("said", "held"),
    [(None, DEFAULT_PAUSE), (1e9, LONGEST_PAUSE), (-1.0, 0.0), (float("nan"), 0.0)],
)
def test_a_rate_limit_is_bounded(said, held):
    """A service that names no time, or an absurd one, is left alone for a declared time (G10)."""
    clock = FakeClock()
    limit = RateLimit(clock)
    limit.note_pause(said)
    if held:
        clock.advance(held - 0.5)
        with pytest.raises(Unavailable):
            limit.check("it")
        clock.advance(0.5)
    limit.check("it")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("2", 2.0),
        ("-2", 0.0),
        ("Thu, 01 Jan 1970 00:00:09 GMT", 4.0),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
    ],
)
def test_retry_after_is_a_number_or_a_date(header, seconds):
    """Both forms of the header are read; any other says nothing."""
    assert retry_after_seconds(header, 5_000) == seconds


def test_the_key_comes_from_the_variable_that_the_options_name(tmp_path, monkeypatch):
    """The options hold the variable's name, never the key; one that is not set is an error."""
    monkeypatch.setenv("THERE_KEY", " sk-1\n")
    assert api_key(config(tmp_path, api_key_env="THERE_KEY")) == "sk-1"
    monkeypatch.delenv("THERE_KEY")
    with pytest.raises(ConfigError, match="THERE_KEY"):
        api_key(config(tmp_path, api_key_env="THERE_KEY"))


def test_the_key_comes_from_a_private_file(tmp_path):
    """A file that others may read is refused, and the remedy named."""
    file = tmp_path / "key"
    file.write_text("sk-2\n")
    file.chmod(0o600)
    assert api_key(config(tmp_path, api_key_file=str(file))) == "sk-2"
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        api_key(config(tmp_path, api_key_file=str(file)))


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff\xfe"])
def test_a_file_without_a_key_is_refused(tmp_path, content):
    """A file that is missing, blank or no text is an error with the instance's name."""
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
        file.chmod(0o600)
    with pytest.raises(ConfigError, match="provider there"):
        api_key(config(tmp_path, api_key_file=str(file)))


def test_one_home_of_the_key(tmp_path):
    """No key is no error; two places for it are."""
    assert api_key(config(tmp_path)) == ""
    with pytest.raises(ConfigError, match="not both"):
        api_key(config(tmp_path, api_key_env="A", api_key_file="b"))


IDS = st.lists(st.text(max_size=130) | st.sampled_from(["a", "A", "a_b", "a-b", ""]), max_size=3)


@given(IDS, IDS)
def test_no_two_lists_of_ids_have_one_name(one, other):
    """Names are plain, bounded, and different for different ids, also of another case."""
    if one != other:
        assert name_of(*one) != name_of(*other)
    for ids in filter(None, (one, other)):
        name = name_of(*ids)
        assert 0 < len(name) <= MAX_NAME_CHARS
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_")


def test_plain_ids_are_their_own_names():
    """Whoever looks into a service sees who is meant."""
    assert name_of("coder", "alice") == "coder__alice"
    assert name_of("Alice Doe").startswith("alice-doe_")
    assert name_of("..").startswith("id_")


@given(st.text(max_size=200), st.integers(1, 30))
def test_a_long_text_is_parted_without_loss(text, most):
    """Every part fits and says something; together they are the text but for blank parts."""
    parts = list(split_text(text, most))
    assert all(part.strip() and len(part) <= most for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_a_long_text_is_parted_between_words():
    """A word is broken only where no white space is near."""
    assert list(split_text("aaaa bbbb cccc dddd eeee", 20)) == ["aaaa bbbb cccc dddd", " eeee"]
    assert list(split_text("x" * 25, 10)) == ["x" * 10, "x" * 10, "x" * 5]


def test_a_question_is_trimmed_and_cut():
    """White space around it is not sent, and of a long one only its beginning is."""
    assert clean_question(" Where\0is Ada? \n") == "Where is Ada?"
    assert clean_question(" \n") == ""
    assert len(clean_question("x" * 3_000)) == LONGEST_QUESTION


def test_what_no_service_keeps_is_left_out():
    """NUL and lone surrogates do not fail a request; all else stays as it is."""
    assert sendable("a\0b\ud800c é\U0001f9e0") == "a b?c é\U0001f9e0"
