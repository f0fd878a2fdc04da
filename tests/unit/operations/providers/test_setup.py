"""What setting up an instance would write, and how it is written."""

import stat
from pathlib import Path

import pytest
from memorybus.config.settings import FILE_NAME, Settings, load
from memorybus.errors import ConfigError
from memorybus.processes.reports import OptionField
from memorybus_console.operations.providers import setup
from memorybus_console.operations.providers.setup import (
    SetupAnswers,
    Target,
    default_variable,
    parse_answer,
    parse_targets,
)

KEY = "correct-horse-battery"

MINE = """\
# of the office
providers = ["builtin", "work"]  # in this order

[provider.work]  # Ann's
kind = "honcho"
# where it is
base_url = "http://localhost:8000"  # the old one
"""


@pytest.fixture(name="place")
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a directory with settings."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE_NAME).write_text(MINE)
    return tmp_path


def settings() -> Settings:
    """Return the settings there."""
    return load(environ={})


def setup_answers_for(name: str = "work", kind: str = "honcho", **options: object) -> SetupAnswers:
    """Return what was answered."""
    return SetupAnswers(Target(name, kind), options, {"WORK_API_KEY": KEY})


def test_comments_and_order_stay(place):
    """Only the options that were answered differ; a secret stands in none of them."""
    what = setup.draft_setup(
        settings(), setup_answers_for(base_url="http://far:8000", api_key_env="WORK_API_KEY")
    )

    changed = MINE.replace("localhost", "far") + 'api_key_env = "WORK_API_KEY"\n'
    assert what.edit.after == changed
    assert not what.is_new
    assert KEY not in what.edit.after + what.edit.diff + repr(what) + repr(setup_answers_for())
    assert (place / FILE_NAME).read_text() == MINE


def test_a_new_instance_is_the_last(place):
    """It gets a table of its own, and a place in the list."""
    what = setup.draft_setup(
        settings(), setup_answers_for("notes", "holographic", embedder_batch=3)
    )

    assert what.is_new
    assert 'providers = ["builtin", "work", "notes"]  # in this order' in what.edit.after
    assert what.edit.after.endswith('[provider.notes]\nkind = "holographic"\nembedder_batch = 3\n')


def test_a_table_that_was_not_named_is(place):
    """Who wrote a table and forgot the list meant it."""
    (place / FILE_NAME).write_text(MINE.replace(', "work"', ""))

    what = setup.draft_setup(settings(), setup_answers_for("work", "honcho"))

    assert what.edit.after == MINE


def test_another_kind_needs_another_name(place):
    """The options of one kind are none of another's."""
    with pytest.raises(ConfigError, match="choose another name"):
        setup.draft_setup(settings(), setup_answers_for("work", "mem0"))


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["holographic"], [("holographic", "holographic")]),
        (["work"], [("work", "honcho")]),
        (["home=honcho"], [("home", "honcho")]),
        (["hermes:mem0"], [("mem0", "hermes:mem0")]),
        (["hermes:/srv/Plug"], [("plug", "hermes:/srv/Plug")]),
        (["a=x", "b=x"], [("a", "x"), ("b", "x")]),
    ],
)
def test_words_name_instances(words, found):
    """An instance there is, a kind, or both."""
    assert [(one.name, one.kind) for one in parse_targets(settings(), words)] == found


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("words", [["../x=a"], ["work", "work"], ["my_notes:Notes", "notes=x"]])
def test_names_that_cannot_be_are_refused(words):
    """No path, and none twice."""
    with pytest.raises(ConfigError):
        parse_targets(settings(), words)


def test_the_secrets_file_is_private_and_whole(place):
    """It is made so that its user alone may read it; comments in it stay, too."""
    path = setup.secrets_path(settings())
    setup.write_edit(setup.edit_secrets(path, {"A": "old", "B": KEY}))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("# keys\n" + path.read_text())

    setup.write_edit(setup.edit_secrets(path, {"A": 'n"e\\w'}))

    assert path == place / "memorybus.secrets.toml"
    assert path.read_text().startswith("# keys\n")
    assert setup.read_secrets(path) == {"A": 'n"e\\w', "B": KEY}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_write_that_is_interrupted_leaves_nothing(place, monkeypatch):
    """Neither half a file nor a copy of it is there afterwards."""
    path = setup.secrets_path(settings())
    edit = setup.edit_secrets(path, {"A": KEY})
    monkeypatch.setattr(setup.os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))

    with pytest.raises(KeyboardInterrupt):
        setup.write_edit(edit)

    assert sorted(one.name for one in place.iterdir()) == [FILE_NAME]


@pytest.mark.usefixtures("place")
def test_a_rehearsal_has_the_secrets_and_leaves_none():
    """The settings as they would be name a private copy, which is gone afterwards."""
    what = setup.draft_setup(settings(), setup_answers_for(base_url="http://far:8000"))

    with setup.trial_settings(what, {}) as then:
        copy = Path(then.secrets_file)
        assert setup.read_secrets(copy) == {"WORK_API_KEY": KEY}
        assert then.provider_options("work")["base_url"] == "http://far:8000"

    assert not copy.exists()
    assert not copy.parent.exists()


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
