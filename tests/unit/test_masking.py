"""Errors are kept and shown without what they should not tell."""

import pytest
from memorybus.errors import Unavailable
from memorybus.masking import described, masked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://me:pw@host:1/0 is away", "redis://***@host:1/0 is away"),
        ("GET https://key@api.example/v1 401", "GET https://***@api.example/v1 401"),
        ("api_key=abc123, user=me", "api_key=***, user=me"),
        ('{"api-key": "abc123"}', '{"api-key": "***"}'),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("bearer abc.def refused", "bearer *** refused"),
        ("token sk-abcdefghij is bad", "token *** is bad"),
        ("password=a&next=b", "password=***&next=b"),
        ("the user asked about tokens: many", "the user asked about tokens: many"),
        ("connection refused", "connection refused"),
    ],
)
def test_credentials_are_masked(text: str, shown: str) -> None:
    """What stands in a URL, after a telling name or in a key's form is not shown; the rest is."""
    assert masked(text) == shown


def test_an_error_is_one_bounded_line() -> None:
    """G10: whatever an error says, its description is one line of bounded length, in Unicode."""
    said = described(Unavailable("a\nb\ud800 " + "x" * 10_000))
    assert said.startswith("Unavailable: a b? x")
    assert len(said) <= 500
    assert said.isprintable()
