"""Options of a command line: what is a number, a list or a flag, and what is only a text."""

import pytest
from memorybus.errors import ConfigError
from memorybus_console.cli.options import parse_key_values


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("a=1", 1),
        ("a=1.5", 1.5),
        ("a=true", True),
        ("a=[1, 2]", [1, 2]),
        ("a=", ""),
        ("a=b=c", "b=c"),
        ("a='1'", "1"),
        ("a=inf", "inf"),
        ("a=-inf", "-inf"),
        ("a=nan", "nan"),
    ],
)
def test_a_value_is_what_toml_says_or_a_text(word, value):
    """A value that a record could not hold as it is, as `inf`, is not taken for a number."""
    assert parse_key_values([word]) == {"a": value}


@pytest.mark.parametrize("word", ["a", "=1", ""])
def test_a_word_without_a_name_or_a_value_is_refused(word):
    """G10: the error says what was given and what it must look like."""
    with pytest.raises(ConfigError, match="must read NAME=VALUE"):
        parse_key_values([word])


@pytest.mark.parametrize("name", ["api_key", "TOKEN", "db_password", "credentials"])
def test_secrets_are_refused(name):
    """A secret is named by where it belongs, and is not repeated."""
    with pytest.raises(ConfigError, match="environment") as refused:
        parse_key_values([f"{name}=hush"])
    assert "hush" not in str(refused.value)
