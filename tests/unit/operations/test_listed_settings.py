"""What each setting is for, what its value is, and where that comes from."""

import tomllib
from pathlib import Path

import pytest
from memorybus.config.settings import FIELDS, FILE_NAME, LIMITS, Settings, load, read_layers
from memorybus.errors import UnknownSetting
from memorybus_console.operations.settings import MEANINGS, effective_settings, reference

NOTHING: dict[str, str] = {}


def test_the_origin_is_where_the_value_that_holds_was_written(tmp_path: Path) -> None:
    """A setting's origin is the last layer that gives it; without one it is the default."""
    file = tmp_path / FILE_NAME
    file.write_text('namespace = "a"\nuser = "ann"\nbatch = 100\n')
    environ = {"MEMORYBUS_NAMESPACE": "b", "MEMORYBUS_BATCH": "200"}
    found = {
        one.name: (one.value, one.origin)
        for one in effective_settings(
            read_layers(environ=environ, directory=tmp_path, namespace="c")
        )
    }
    assert tuple(found) == FIELDS
    assert found["namespace"] == ("c", "--namespace")
    assert found["batch"] == ("200", "MEMORYBUS_BATCH")
    assert found["user"] == ("ann", str(file))
    assert found["window"] == ("1024", "default")


def test_credentials_are_masked(tmp_path: Path) -> None:
    """The password of a URL and an option that is called a key are not shown."""
    (tmp_path / FILE_NAME).write_text('[provider.x]\napi_key = "swordfish-one"\n')
    environ = {"MEMORYBUS_URL": "redis://:swordfish-two@somewhere/0"}
    shown = repr(effective_settings(read_layers(environ=environ, directory=tmp_path)))
    assert "swordfish" not in shown
    assert "somewhere" in shown


def test_a_secrets_file_beside_is_an_origin(tmp_path: Path) -> None:
    """A secrets file that was found beside the settings is named as found there."""
    (tmp_path / FILE_NAME).touch()
    beside = tmp_path / "memorybus.secrets.toml"
    beside.touch(0o600)
    found = {
        one.name: one
        for one in effective_settings(read_layers(environ=NOTHING, directory=tmp_path))
    }
    assert found["secrets_file"].value == found["secrets_file"].origin == str(beside)


def test_each_setting_has_a_meaning_and_a_measure_has_a_unit() -> None:
    """`config show` has a sentence on every setting, and a unit for every number but a weight."""
    settings = effective_settings([])
    assert [one.name for one in settings if not one.meaning.endswith(".")] == []
    numbers = {name for name in FIELDS if isinstance(getattr(Settings(), name), int | float)}
    assert {one.name for one in settings if one.unit} == numbers - {"capacity"} | {"retention"}
    assert not any("(G" in one.meaning for one in settings)


def test_the_reference_is_a_settings_file_with_every_setting(tmp_path: Path) -> None:
    """Without the comment marks it is read as the default settings, and it names each of them."""
    lines = reference().headline().splitlines()
    file = tmp_path / FILE_NAME
    file.write_text(
        "\n".join(line[1:] for line in lines if line.startswith("#") and line[1] != " ")
    )
    written = tomllib.loads(file.read_text())
    assert written.keys() == set(FIELDS)
    assert written["provider"].keys() == {"NAME"}
    assert tuple(written["provider"]["NAME"]) == LIMITS
    settings = load(environ=NOTHING, file=file)
    assert settings == Settings(provider=settings.provider)
    assert max(map(len, lines)) < 100


@pytest.mark.parametrize(
    ("former", "successor"), [("spool_ballast", "spool_reserve"), ("notify", "check --notify")]
)
def test_a_setting_of_a_former_name_names_its_successor(former: str, successor: str) -> None:
    """Whoever upgrades reads what to write now, in a file as in the environment."""
    with pytest.raises(UnknownSetting, match=successor):
        load(environ={f"MEMORYBUS_{former.upper()}": "1"})


def test_options_are_explained_as_their_settings_are() -> None:
    """A meaning is written once: the help of an option is that of its setting."""
    from memorybus_console.cli.options import Common

    assert MEANINGS["namespace"] in str(Common.__annotations__["namespace"])
