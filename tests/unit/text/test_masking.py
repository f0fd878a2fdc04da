"""Errors are kept and shown without what they should not tell."""

import json
import logging
import time

import pytest
from memorybus.config.settings import Settings
from memorybus.errors import Unavailable
from memorybus.text.redact import (
    REASON_CHARS,
    TRACE_CHARS,
    describe_error,
    mask_record,
    mask_trace_tail,
    masked,
    one_line,
)
from memorybus_providers.base import ProviderConfig

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
LIVE = "sk-live-4f9d2c7b81"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"

URLS = [
    ("redis://me:pw@host:1/0 is away", "redis://***@host:1/0 is away"),
    ("redis://:p@ss/w@rd@host", "redis://***@host"),
    ("redis://u:12/34@host:1/0", "redis://***@host:1/0"),
    ("redis://:p%40ss%2Fw@host:6379/0", "redis://***@host:6379/0"),
    ("rediss://u:pw@[::1]:6379", "rediss://***@[::1]:6379"),
    (
        "redis+sentinel://u:pw@one:1,two:2/main?sentinel_password=s3cret&db=1",
        "redis+sentinel://***@one:1,two:2/main?sentinel_password=***&db=1",
    ),
    ("'redis+cluster://:pw@one:1,two:2'", "'redis+cluster://***@one:1,two:2'"),
    ("postgresql://crm:pa/ss@db/crm?sslmode=on", "postgresql://***@db/crm?sslmode=on"),
    ("host=db user=crm password=hunter2 dbname=x", "host=db user=crm password=*** dbname=x"),
    ("https://crm:sk-live-1@h/v1 and http://k@i/", "https://***@h/v1 and http://***@i/"),
    ("GET https://key@api.example/v1 401", "GET https://***@api.example/v1 401"),
    ("ConnectError('https://u:p#w@h/x')", "ConnectError('https://***@h/x')"),
    ("amqp://h/a,http://a:b@c", "amqp://h/a,http://***@c"),
]

NAMED = [
    ("api_key=abc123, user=me", "api_key=***, user=me"),
    ("(apikey=abc123), then", "(apikey=***), then"),
    ("api_key=abc123: no such key.", "api_key=***: no such key."),
    ("password=a&next=b", "password=***&next=b"),
    ("password=a,b;c d", "password=*** d"),
    ('{"api-key": "abc123"}', '{"api-key": "***"}'),
    ("{'apiKey': 'a, b', 'user': 'me'}", "{'apiKey': '***', 'user': 'me'}"),
    ('{"api_key":"a\\"b c","n":1}', '{"api_key":"***","n":1}'),
    (json.dumps(json.dumps({"token": "a b"})), '"{\\"token\\": \\"***\\"}"'),
    ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
    ("authorization: Basic dXNlcjpwYXNz==", "authorization: Basic ***"),
    ("{'Authorization': 'Bearer abc'}", "{'Authorization': 'Bearer ***'}"),
    ("[(b'authorization', b'Token abc')]", "[(b'authorization', b'Token ***')]"),
    ("Proxy-Authorization: abc", "Proxy-Authorization: ***"),
    ("bearer abc.def refused", "bearer *** refused"),
    ("x-api-key: abc", "x-api-key: ***"),
    ("access_token=abc&refresh_token=def", "access_token=***&refresh_token=***"),
    ("password='it is'", "password='***'"),
    ("password='cut off here", "password='***"),
    ("Secret => abc", "Secret => ***"),
    ("HONCHO_API_KEY=abc\nexport PGPASSWORD=def", "HONCHO_API_KEY=***\nexport PGPASSWORD=***"),
    ("aws_secret_access_key = wJalr/bPx", "aws_secret_access_key = ***"),
    ("aws_access_key_id: x1", "aws_access_key_id: ***"),
    ("X-Amz-Signature=ab12&X-Amz-Date=3", "X-Amz-Signature=***&X-Amz-Date=3"),
    ("""KeyError("no 'token': 'abc' there")""", """KeyError("no 'token': '***' there")"""),
    (repr(ValueError('api_key="a\'b" is bad')), "ValueError('api_key=\"***\" is bad')"),
    ("Client(password='x', host='h')", "Client(password='***', host='h')"),
]

FORMS = [
    ("token sk-abcdefghij is bad", "token *** is bad"),
    (f"no such key: {LIVE}.", "no such key: ***."),
    ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "***"),
    ("github_pat_11ABCDEFG0abcdef", "***"),
    ("xoxb-123456789-abc of a bot", "*** of a bot"),
    ("AKIAIOSFODNN7EXAMPLE", "***"),
    ("m0-1234567890ab at 3", "*** at 3"),
    (f"jwt:{JWT} expired", "jwt:*** expired"),
    (f"key {PEM} refused", "key *** refused"),
]

PROSE = [
    "the user asked about tokens: many",
    "the password is on the fridge",
    "the bearer of bad news, a bearer token",
    "connection refused",
    "https://api.example:8000/users/anna@example.org is not found",
    "write to anna@example.org",
    "max_tokens=5, key='session:1', its key 'store:a:b' waits",
    "api_key=None, token: null, password=''",
    "pk_memories_id is violated",
    "12 keys; m0-is-a-name; the secretary said: no",
    'File "/srv/app.py", line 3, in send',
]


def test_credentials_are_masked():
    """What stands in a URL, after a telling name or in a key's form is not shown."""
    expected = dict([*URLS, *NAMED, *FORMS])
    shown = {text: masked(text) for text in expected}
    assert shown == expected
    assert {text: masked(text) for text in shown.values()} == {one: one for one in shown.values()}


def test_ordinary_words_stay():
    """A reason is of use only if what is no credential can be read."""
    assert [masked(text) for text in PROSE] == PROSE


def test_a_known_value_is_masked_wherever_it_stands():
    """What is configured as secret needs no telling form; a short one would be a part of words."""
    shown = masked(
        "no plain-words-1 and plain-words-12 here", {"plain-words-1", "plain-words-12", "no"}
    )
    assert shown == "no *** and *** here"


@pytest.mark.parametrize(
    "piece",
    [
        *("a", " ", "'", "://", "://a:", "a@", "sk-", "eyJ", "eyJa-", "eyJabcdefgh.", "bearer "),
        *("password", "password=", "password='", 'password=\\"', "token: ", "token\\\\\\", "api "),
        *("-----BEGIN PRIVATE KEY-----", "pk-", "'token',", "authorization:bearer ", "\\", "http"),
    ],
)
@pytest.mark.slow(reason="measures long texts")
def test_a_hostile_text_costs_no_more_than_its_length(piece):
    """G10: 1 MiB of whatever is masked in time: no pattern goes back and forth."""
    text = piece * ((1 << 20) // len(piece))
    begun = time.thread_time()
    masked(text)
    assert time.thread_time() - begun < 5.0  # 0.3 s, and a margin for slow machines


def test_an_error_is_one_bounded_line():
    """G10: whatever an error says, its description is one line of bounded length, in Unicode."""
    said = describe_error(Unavailable("a\nb\ud800 " + "x" * 10_000))
    assert said.startswith("Unavailable: a b? x")
    assert len(said) == REASON_CHARS
    assert said.isprintable()


@pytest.mark.parametrize("before", range(480, 500, 3))
def test_what_is_cut_off_was_masked_before(before):
    """A credential across the end of what is kept shows no part of itself."""
    assert "sk-" not in one_line(f"{'x' * before} {LIVE}")
    assert LIVE[-6:] not in mask_trace_tail(f"api_key='{LIVE}'" + "y" * (TRACE_CHARS - 6))


def test_settings_show_no_credential_and_know_their_own():
    """What a settings object is printed as may end up anywhere; its own values are known."""
    settings = Settings(
        url="redis://:p%40ssword@one",
        jobs_url="redis+sentinel://two/main?sentinel_password=hush-hush",
        provider={
            "crm": {"kind": "x", "api_key": "plain-words", "env": {"CRM_TOKEN": "other-words"}},
            "pg": {"dsn": "postgresql://me:pg-word@db/x", "key_prefix": "seen", "limit": 3},
        },
    )
    own = {"p%40ssword", "p@ssword", "hush-hush", "plain-words", "other-words", "pg-word"}
    assert settings.secrets == own
    assert not [one for one in own if one in repr(settings)]
    assert "key_prefix" in repr(settings)
    config = ProviderConfig(name="crm", home=settings.data_dir, options=settings.provider["crm"])
    assert "plain-words" not in repr(config)


def test_a_line_of_ours_in_an_agents_log_is_masked(caplog):
    """An agent's logging is its own; what we say there has no credential in it."""
    log = logging.getLogger("memorybus.test")
    log.addFilter(mask_record)
    error = ValueError(f"api_key={LIVE}")
    log.warning("%s: %d of them", error, 3, exc_info=error)
    log.warning("%d of them", 3)
    assert LIVE not in caplog.text
    assert [record.getMessage() for record in caplog.records] == [
        "api_key=***: 3 of them",
        "3 of them",
    ]
    assert caplog.records[1].args == (3,)
