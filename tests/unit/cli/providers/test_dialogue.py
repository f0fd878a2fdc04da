"""The dialogue of `provider setup`: what is asked, what counts as an answer."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.processes.reports import KindOffer, OptionField
from memorybus_console.cli.providers import dialogue
from memorybus_console.cli.providers.dialogue import Dialogue, option_text, parse_choice
from memorybus_console.operations.providers.setup import SetupAnswers, Target
from rich.console import Console

FIELDS = (
    OptionField("url", "where it is", default="http://here", hint="the server's address"),
    OptionField("key_env", "its key", secret=True),
    OptionField("mode", "how", choices=("fast", "deep"), default="fast"),
    OptionField("most", "how many", default=7),
)
OFFER = KindOffer("far", options=FIELDS)


class Person:
    """Answers with the lines given; remembers what was asked, and which answers were hidden."""

    def __init__(self, *answers: str) -> None:
        self.answers: Iterator[str] = iter(answers)
        self.asked: list[str] = []
        self.hidden: list[str] = []
        self.screen = io.StringIO()
        self.dialogue = Dialogue(Console(file=self.screen, width=200), self._read)

    def _read(self, prompt: Any, *, password: bool) -> str:
        self.asked.append(str(prompt))
        answer = next(self.answers, None)
        if answer is None:
            raise EOFError
        if password:
            self.hidden.append(answer)
        return answer


def asked(
    person: Person, tmp_path: Path, now: dict[str, Any] | None = None, **said: Any
) -> SetupAnswers:
    """Ask for the options of an instance."""
    settings = Settings(secrets_file=str(tmp_path / "secrets.toml"))
    given = SetupAnswers(Target("work", "far"), said, {})
    return dialogue.ask_options(person.dialogue, settings, FIELDS, now or {}, given)


def test_what_is_left_at_its_default_is_not_written(tmp_path):
    """Enter keeps what there is; a secret that nobody gave is none."""
    given = asked(Person("", "", "", ""), tmp_path)

    assert (given.options, given.secrets) == ({}, {})


def test_answers_become_options_and_secrets(tmp_path):
    """A secret is read unseen, and its option names the variable that holds it."""
    person = Person("http://far", "hush-hush-hush", "2", "y", "9")

    given = asked(person, tmp_path)

    assert given.options == {"url": "http://far", "key_env": "WORK_KEY", "mode": "deep", "most": 9}
    assert given.secrets == {"WORK_KEY": "hush-hush-hush"}
    assert person.hidden == ["hush-hush-hush"]
    assert "hush-hush-hush" not in person.screen.getvalue() + repr(given)
    assert "the server's address" in person.screen.getvalue()


def test_a_variable_may_be_named_instead(tmp_path):
    """A key that the workers' environment has is not copied into a file."""
    given = asked(Person("", "$OFFICE_KEY", "", "n"), tmp_path)

    assert given.options == {"key_env": "OFFICE_KEY"}
    assert given.secrets == {}


def test_a_secret_that_is_kept_stays(tmp_path):
    """Enter keeps the one in the file."""
    file = tmp_path / "secrets.toml"
    file.write_text('WORK_KEY = "x"\n')
    file.chmod(0o600)
    person = Person("", "", "", "n")

    given = asked(person, tmp_path)

    assert (given.options, given.secrets) == ({"key_env": "WORK_KEY"}, {})
    assert any("WORK_KEY stays" in question for question in person.asked)


def test_a_wrong_answer_is_asked_again(tmp_path):
    """It says why, and goes on with the same question."""
    person = Person("", "", "slow", "deep", "y", "many", "3")

    given = asked(person, tmp_path)

    assert given.options == {"mode": "deep", "most": 3}
    assert "one of: fast, deep" in person.screen.getvalue()
    assert "must be a number" in person.screen.getvalue()


def test_what_flags_said_is_not_asked(tmp_path):
    """Nor is what stands in the settings changed by Enter."""
    person = Person("", "", "n")

    given = asked(person, tmp_path, {"mode": "deep"}, url="http://far")

    assert given.options == {"url": "http://far"}
    assert not any("url" in question for question in person.asked)
    assert any("[deep]" in question for question in person.asked)


def test_a_required_option_is_asked_until_it_is_there():
    """An empty answer is none."""
    person = Person("", "x")
    given = SetupAnswers(Target("work", "far"), {}, {})
    fields = (OptionField("who", "whose", required=True),)

    found = dialogue.ask_options(person.dialogue, Settings(), fields, {}, given)

    assert found.options == {"who": "x"}
    assert "who is required" in person.screen.getvalue()


def test_an_end_of_input_ends_the_dialogue(tmp_path):
    """A pipe that ends is no answer."""
    with pytest.raises(ConfigError, match="nothing was written"):
        asked(Person("http://far"), tmp_path)


def from_flags(
    *changes: str, secrets: tuple[str, ...] = (), lines: str = "", two: bool = False
) -> Any:
    """Return what flags say."""
    wanted = [Target("work", "far"), *([Target("home", "far")] if two else [])]
    return dialogue.answers_from_flags(wanted, {"far": OFFER}, changes, secrets, io.StringIO(lines))


def test_flags_are_read_by_the_schema():
    """A number is one where the schema says so; an option that it lacks is as TOML has it."""
    given = from_flags("url=5", "work.most=5", "other=[1]")["work"]

    assert given.options == {"url": "5", "most": 5, "other": [1]}


def test_a_secret_comes_by_a_line():
    """It stands on no command line; its variable may be named."""
    one = from_flags(secrets=("key_env",), lines="hush\n")["work"]
    two = from_flags("key_env=MINE", secrets=("work.key_env",), lines="hush\r\n")["work"]

    assert (one.options, one.secrets) == ({"key_env": "WORK_KEY"}, {"WORK_KEY": "hush"})
    assert (two.options, two.secrets) == ({"key_env": "MINE"}, {"MINE": "hush"})


def test_of_several_an_option_says_whose_it_is():
    """A name that only one of them has would be a guess."""
    found = from_flags("work.most=1", "home.most=2", two=True)
    assert [found[name].options["most"] for name in ("work", "home")] == [1, 2]
    with pytest.raises(ConfigError, match=r"work\.most, home\.most"):
        from_flags("most=1", two=True)


@pytest.mark.parametrize(
    ("changes", "secrets", "said"),
    [
        (("url",), (), "NAME=VALUE"),
        (("token=x",), (), "no settings file"),
        ((), ("url",), "no such secret"),
        ((), ("key_env",), "no line"),
    ],
)
def test_flags_that_say_nothing_are_refused(changes, secrets, said):
    """The message names the flag."""
    with pytest.raises(ConfigError, match=said):
        from_flags(*changes, secrets=secrets)


@pytest.mark.parametrize(
    ("answer", "names"), [("1", ["a"]), ("2, a", ["b", "a"]), ("x=b 1", ["x=b", "a"])]
)
def test_a_choice_is_numbers_or_names(answer, names):
    """Several are parted by commas or spaces."""
    assert parse_choice(answer, ["a", "b"]) == names


@pytest.mark.parametrize("answer", ["", " , ", "0", "3"])
def test_a_choice_that_is_none_is_refused(answer):
    """The list has as many as it has."""
    with pytest.raises(ConfigError):
        parse_choice(answer, ["a", "b"])


@pytest.mark.parametrize(
    ("value", "text"), [(True, "yes"), (False, "no"), (["a", "b"], "a, b"), (None, ""), (5, "5")]
)
def test_a_value_is_shown_as_it_is_answered(value, text):
    """What stands in brackets may be typed."""
    assert option_text(value) == text
