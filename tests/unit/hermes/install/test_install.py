"""The plugin's files in a Hermes home, its settings, and what Hermes asks of its set-up."""

import logging
import subprocess
import sys
import types
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from memorybus.errors import ConfigError, install_command
from memorybus_hermes.home import (
    HermesHome,
    active_provider,
    checkpoint_required,
    find_home,
    profile_of,
)
from memorybus_hermes.install import install
from memorybus_hermes.install.install import NotInstalled


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> HermesHome:
    """Return an empty Hermes home."""
    return HermesHome(tmp_path, "default")


def test_installing_twice_changes_nothing_the_second_time(home):
    """The files are written whole, once; what is in place is left alone."""
    assert install.write_plugin(home) == list(install.FILES)
    assert install.write_plugin(home) == []
    assert set(install.file_states(home).values()) == {"in place"}
    assert sorted(path.name for path in home.plugin_dir.iterdir()) == sorted(install.FILES)


def test_an_older_file_is_replaced_and_told(home):
    """A file of another release is seen and replaced."""
    install.write_plugin(home)
    (home.plugin_dir / "cli.py").write_text("old")
    assert install.file_states(home)["cli.py"] == "other"
    assert install.write_plugin(home) == ["cli.py"]


def test_hermes_finds_what_it_looks_for(home):
    """The marks that Hermes 0.19.0 looks for stand in the first 8192 bytes of the stub."""
    install.write_plugin(home)
    head = (home.plugin_dir / "__init__.py").read_text()[:8192]
    assert "register_memory_provider" in head
    assert "MemoryProvider" in head
    assert f'version: "{version("memorybus")}"' in (home.plugin_dir / "plugin.yaml").read_text()


def test_another_plugin_of_that_name_is_left_alone(home):
    """What is not ours is neither written over nor deleted."""
    home.plugin_dir.mkdir(parents=True)
    (home.plugin_dir / "__init__.py").write_text("# somebody else's")
    with pytest.raises(NotInstalled, match="holds another plugin"):
        install.write_plugin(home)
    with pytest.raises(NotInstalled, match="holds another plugin"):
        install.remove_plugin(home)


def test_uninstalling_takes_out_our_files_only(home):
    """A file of the user's in the directory stays, and so does the directory then."""
    install.write_plugin(home)
    (home.plugin_dir / "notes.txt").write_text("mine")
    assert install.remove_plugin(home)
    assert [path.name for path in home.plugin_dir.iterdir()] == ["notes.txt"]
    (home.plugin_dir / "notes.txt").unlink()
    install.write_plugin(home)
    assert install.remove_plugin(home)
    assert not home.plugin_dir.exists()
    assert not install.remove_plugin(home)


def test_a_home_that_is_not_there_is_told(tmp_path):
    """Nothing is made up where no Hermes is."""
    with pytest.raises(NotInstalled, match="no such directory"):
        install.write_plugin(HermesHome(tmp_path / "none", "default"))


class Context:
    """What Hermes hands to `register`."""

    provider: Any = None

    def register_memory_provider(self, provider: Any) -> None:
        """Take the provider."""
        self.provider = provider


def executed(name: str) -> dict[str, Any]:
    """Run one of the plugin's files as Hermes does, and return its names."""
    module = types.ModuleType(name)
    exec(compile(install.plugin_files()[name], name, "exec"), module.__dict__)
    return module.__dict__


def test_without_the_package_the_stub_says_so_loudly(monkeypatch, caplog):
    """A Hermes whose Python lacks memorybus gets a provider that is not available, and why."""
    abc = types.ModuleType("agent.memory_provider")
    abc.MemoryProvider = object
    monkeypatch.setitem(sys.modules, "agent", types.ModuleType("agent"))
    monkeypatch.setitem(sys.modules, "agent.memory_provider", abc)
    monkeypatch.setitem(sys.modules, "memorybus_hermes.plugin", None)
    context = Context()
    with caplog.at_level(logging.ERROR):
        executed("__init__.py")["register"](context)
    assert context.provider.name == "memorybus"
    assert not context.provider.is_available()
    assert "Install memorybus again" in context.provider.get_status_config({})["not available"]
    assert "no memory in this session" in caplog.text


def test_the_command_line_file_imports_nothing():
    """Hermes runs cli.py before the plugin and at every start: it loads no package of ours."""
    program = (
        "import sys; exec(sys.stdin.read()); "
        "assert not any(n.startswith(('memorybus', 'redis', 'rich')) for n in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=install.plugin_files()["cli.py"],
        text=True,
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr


def test_a_python_with_the_package_is_recognised(home):
    """The Python that runs Hermes is asked itself; a missing package is told with its command."""
    found = install.check_python(sys.executable, home, {})
    assert (found.remedy, found.placement) == ("", None)

    def lacks(*_: Any, **__: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.CompletedProcess([], 1, "", "ModuleNotFoundError")

    found = install.check_python("/opt/python", home, {}, lacks)
    assert found.remedy == f"/opt/python -m {install_command()}"
    assert "--python" in install.check_python("", home, {}).remedy


def test_recording_that_hermes_does_not_end_is_told(home):
    """If `hermes memory off` cannot run, or changes nothing, that is an error with its remedy."""

    def does_nothing(*_: Any, **__: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.CompletedProcess([], 0, "saved", "")

    assert not install.deactivate(home, "", {})
    home.config.write_text("memory:\n  provider: memorybus\n")
    with pytest.raises(NotInstalled, match=r"goes on recording: no Hermes .*`hermes memory off`"):
        install.deactivate(home, "", {})
    with pytest.raises(NotInstalled, match="goes on recording after"):
        install.deactivate(home, "/opt/python", {}, does_nothing)


def test_the_python_of_the_hermes_command_is_found(tmp_path):
    """It is named by the command's first line; another kind of file names none."""
    script = tmp_path / "hermes"
    python = tmp_path / "python3"
    python.touch()
    script.write_text(f"#!{python}\nimport sys\n")
    assert install.hermes_python(lambda _: str(script), lambda _: None) == str(python)
    script.write_bytes(b"\x7fELF\x00\xff")
    assert install.hermes_python(lambda _: str(script), lambda _: None) == ""
    assert install.hermes_python(lambda _: None, lambda _: None) == ""


def test_hermes_beside_us_needs_no_path():
    """Where memorybus lies in Hermes's own environment and is called by its path, that is it."""
    assert install.hermes_python(lambda _: None, lambda name: name) == sys.executable


def test_a_python_without_hermes_is_named(home):
    """`--activate` asks the Hermes of the Python it was told, and says if there is none."""
    with pytest.raises(NotInstalled, match=r"has no Hermes; .*--python"):
        install.activate(home, sys.executable, {})
    with pytest.raises(NotInstalled, match=r"no Hermes was found.*--python"):
        install.activate(home, "", {})


@pytest.mark.parametrize(
    ("read", "text", "found"),
    [
        (active_provider, "memory:\n  provider: memorybus\n", "memorybus"),
        (
            active_provider,
            "m: x\nmemory:  # ours\n\n  # a remark\n  on: true\n  provider: 'honcho'\n",
            "honcho",
        ),
        (active_provider, "memory:\n  honcho:\n    provider: inner\n  provider: outer\n", "outer"),
        (active_provider, "memory:\n  honcho:\n    provider: inner\n", ""),
        (active_provider, "memory: {enabled: true, provider: mem0}\n", "mem0"),
        (active_provider, "tts:\n  provider: edge\nmemory:\n  provider:\n", ""),
        (active_provider, "", ""),
        (checkpoint_required, "compression:\n  enabled: true\n  checkpoint_required: true\n", True),
        (checkpoint_required, "compression: {checkpoint_required: yes}\n", True),
        (checkpoint_required, "compression:\n  checkpoint_required: false\n", False),
        (
            checkpoint_required,
            "compression:\n  enabled: true\nmemory:\n  checkpoint_required: true\n",
            False,
        ),
        (checkpoint_required, "", False),
    ],
)
def test_a_line_of_hermes_configuration_is_read(tmp_path, read, text, found):
    """It is found in the ways it is written; another table's key of that name is another key."""
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert read(path) == found


def test_setup_keeps_the_rest_of_hermes_configuration(home):
    """Becoming the provider changes one key."""
    config: dict[str, Any] = {"model": "x", "memory": {"memory_enabled": True, "provider": "mem0"}}

    def ends_with(code: int) -> install.RunProcess:
        return lambda *_, **__: subprocess.CompletedProcess([], code)

    before = dict(config)
    assert not install.post_setup(home, config, ends_with(130))
    assert config == before
    assert install.post_setup(home, config, ends_with(0))
    assert config == {
        "model": "x",
        "memory": {"memory_enabled": True, "provider": "memorybus"},
    }


def test_saved_settings_are_what_the_plugin_reads(home):
    """What set-up asked for is in the home's own file; what stood there before stays."""
    home.settings_file.write_text(
        '# mine\nurl = "redis://old"\nproviders = ["builtin"]\n[provider.x]\nkind = "builtin"\n'
    )
    install.save_config({"url": "redis://host:6379/1", "user": ""}, home)
    settings = home.settings()
    assert (settings.url, settings.providers) == ("redis://host:6379/1", ("builtin",))
    assert settings.provider == {"x": {"kind": "builtin"}}
    assert home.settings_file.read_text().startswith("# mine")
    assert home.settings_file.stat().st_mode & 0o077 == 0


def test_wrong_settings_are_not_saved(home):
    """A value that cannot be is refused, and the file stays as it was."""
    install.save_config({"namespace": "mb"}, home)
    before = home.settings_file.read_bytes()
    for wrong in ({"namespace": "not a word"}, {"ulr": "redis://x"}):
        with pytest.raises(ConfigError):
            install.save_config(wrong, home)
    assert home.settings_file.read_bytes() == before
    assert [path.name for path in home.path.iterdir()] == ["memorybus.toml"]


def test_nothing_that_is_asked_for_is_required():
    """Set-up works with nothing but Return; no secret is asked for."""
    for field in install.config_schema():
        assert not field.get("required")
        assert not field.get("secret")


def test_a_project_does_not_say_where_memories_go(home, tmp_path, monkeypatch):
    """A memorybus.toml in the directory an agent works in is not read."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "memorybus.toml").write_text('url = "redis://attacker"\n')
    monkeypatch.chdir(project)
    monkeypatch.delenv("MEMORYBUS_CONFIG", raising=False)
    assert home.settings(url=None).url != "redis://attacker"


@pytest.mark.parametrize(
    ("home", "profile"),
    [
        ("/h/.hermes", "default"),
        ("/h/.hermes/profiles/coder", "coder"),
        ("/h/.hermes/profiles/Not Valid", "custom"),
        ("/h/.hermes/elsewhere", "custom"),
        ("/opt/data", "default"),
        ("/opt/data/profiles/coder", "coder"),
    ],
)
def test_profiles_are_named_as_hermes_names_them(home, profile):
    """The profile is the agent's identity in memories, so that a live plugin's is the same."""
    assert profile_of(Path(home), Path("/h/.hermes")) == profile


def test_the_home_is_found_as_hermes_finds_it(tmp_path):
    """What is named, else HERMES_HOME, else ~/.hermes."""
    env = {"HOME": "/h", "HERMES_HOME": "/opt/data"}
    assert find_home(None, env).path == Path("/opt/data")
    assert find_home(tmp_path, env).path == tmp_path
    assert find_home(None, {"HOME": "/h"}).path == Path("/h/.hermes")
