"""What is answered for an option, as a value of its schema."""

import pytest
from memorybus.errors import ConfigError
from memorybus.processes.reports import OptionField
from memorybus_console.operations.providers.setup import default_variable, parse_answer

MODE = OptionField("mode", choices=("fast", "deep", 3))
SECRET = OptionField("api_key_env", secret=True)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (OptionField("a"), "1", "1"),
        (OptionField("a", default=1), "1", 1),
        (OptionField("a", default=1.0), "0.5", 0.5),
        (OptionField("a", default=1), "1_000", 1_000),
        (OptionField("a", default=False), "Yes", True),
        (OptionField("a", default=True), "off", False),
        (OptionField("a", default=[]), "x, y,", ["x", "y"]),
        (OptionField("a", default=[]), '["x", "y z"]', ["x", "y z"]),
        (OptionField("a", type="list"), "x", ["x"]),
        (MODE, "deep", "deep"),
        (MODE, "2", "deep"),
        (MODE, "3", 3),
        (SECRET, "HONCHO_API_KEY", "HONCHO_API_KEY"),
        (SECRET, "$MY_KEY", "MY_KEY"),
    ],
)
def test_a_text_becomes_what_the_schema_says(field, text, value):
    """A text stays a text where one is wanted; a choice counts by its name before its number."""
    found = parse_answer(field, text)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        (OptionField("a", default=1), "many", "a must be a number"),
        (OptionField("a", default=1), "true", "a must be a number"),
        (OptionField("a", default=False), "perhaps", "yes or no"),
        (OptionField("a", default=[]), "[x", r'\["a", "b"\]'),
        (MODE, "4", "one of: fast, deep, 3"),
        (SECRET, "sk-hunter2-hunter2", "name of an environment variable"),
    ],
)
def test_what_fits_not_is_refused(field, text, said):
    """The message says what is wanted."""
    with pytest.raises(ConfigError, match=said):
        parse_answer(field, text)


def test_a_secret_is_not_repeated():
    """Who types the secret for its variable does not find it in an error."""
    with pytest.raises(ConfigError) as refused:
        parse_answer(SECRET, "sk-hunter2-hunter2")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("instance", "key", "variable"),
    [
        ("honcho", "api_key_env", "HONCHO_API_KEY"),
        ("holographic", "embedder_key", "HOLOGRAPHIC_EMBEDDER_KEY"),
        ("work@2.x", "dsn_env", "WORK_2_X_DSN"),
        ("2nd", "key", "MB_2ND_KEY"),
    ],
)
def test_a_secret_has_a_variable_of_its_instance(instance, key, variable):
    """Two instances of one kind keep their secrets under two names."""
    assert default_variable(instance, OptionField(key)) == variable
