"""Where each setting comes from, as `memorybus config show` tells it."""

from memorybus.config.origins import effective_settings
from memorybus.config.settings import FIELDS, FILE_NAME, read_layers

NOTHING: dict[str, str] = {}


def test_the_origin_is_where_the_value_that_holds_was_written(tmp_path):
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


def test_credentials_are_masked(tmp_path):
    """The password of a URL and an option that is called a key are not shown."""
    (tmp_path / FILE_NAME).write_text('[provider.x]\napi_key = "swordfish-one"\n')
    environ = {"MEMORYBUS_URL": "redis://:swordfish-two@somewhere/0"}
    shown = repr(effective_settings(read_layers(environ=environ, directory=tmp_path)))
    assert "swordfish" not in shown
    assert "somewhere" in shown


def test_a_secrets_file_beside_is_an_origin(tmp_path):
    """A secrets file that was found beside the settings is named as found there."""
    (tmp_path / FILE_NAME).touch()
    beside = tmp_path / "memorybus.secrets.toml"
    beside.touch(0o600)
    found = {
        one.name: one
        for one in effective_settings(read_layers(environ=NOTHING, directory=tmp_path))
    }
    assert found["secrets_file"].value == found["secrets_file"].origin == str(beside)
