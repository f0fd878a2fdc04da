"""Settings: file, then environment, then arguments; a mistake is named with its remedy."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import msgspec
import platformdirs
import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from memorybus.config.parsing import host_zone, zone_named
from memorybus.config.settings import FIELDS, FILE_NAME, CallLimits, Settings, load
from memorybus.errors import ConfigError, UnknownSetting
from memorybus.events import LARGEST_BODY

NOTHING: dict[str, str] = {}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return an empty ``memorybus.toml`` in a directory of its own."""
    file = tmp_path / FILE_NAME
    file.touch()
    return file


def test_defaults_need_nothing(tmp_path):
    """Without file, environment and arguments the settings are the documented defaults."""
    assert load(environ=NOTHING, directory=tmp_path) == Settings()
    assert Settings().data_dir == Path(platformdirs.user_data_dir("memorybus"))


def test_later_sources_win(config):
    """Arguments win over the environment, which wins over the file."""
    config.write_text("partitions = 2\nbatch = 20\nagent = 'filed'\n")
    environ = {"MEMORYBUS_PARTITIONS": "3", "MEMORYBUS_BATCH": "30"}
    loaded = load(environ=environ, directory=config.parent, partitions=4)
    assert (loaded.partitions, loaded.batch, loaded.agent) == (4, 30, "filed")


def test_an_argument_of_none_is_not_given(tmp_path):
    """A command-line option that was not used leaves the setting alone."""
    environ = {"MEMORYBUS_AGENT": "coder"}
    assert load(environ=environ, directory=tmp_path, agent=None).agent == "coder"


def test_the_process_environment_is_the_default(tmp_path, monkeypatch):
    """Without an explicit environment the process's own is read, and the working directory."""
    (tmp_path / FILE_NAME).write_text("user = 'ada'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORYBUS_AGENT", "coder")
    loaded = load()
    assert (loaded.user, loaded.agent) == ("ada", "coder")


def test_a_named_file_is_read_instead(config, tmp_path):
    """``MEMORYBUS_CONFIG`` names the file; the one in the directory is then left alone."""
    config.write_text("agent = 'here'")
    named = tmp_path / "other.toml"
    named.write_text("user = 'ada'")
    loaded = load(environ={"MEMORYBUS_CONFIG": str(named)}, directory=config.parent)
    assert (loaded.agent, loaded.user) == ("default", "ada")


@pytest.mark.parametrize(
    ("name", "given_text", "value"),
    [
        ("PARTITIONS", "4", 4),
        ("LEASE", "12.5", 12.5),
        ("NAMESPACE", "prod", "prod"),
        ("PROVIDERS", "builtin, holographic ,", ("builtin", "holographic")),
        ("PROVIDERS", "", ()),
        ("URL", "redis://h:6379/0", "redis://h:6379/0"),
        ("DATA_DIR", "/srv/mb", Path("/srv/mb")),
        ("LOG", "json", "json"),
        ("LOG_LEVEL", "warning", "warning"),
    ],
)
def test_the_environment_is_typed(tmp_path, name, given_text, value):
    """A MEMORYBUS_* text becomes the setting's own type."""
    loaded = load(environ={f"MEMORYBUS_{name}": given_text}, directory=tmp_path)
    assert getattr(loaded, name.lower()) == value


def test_a_home_directory_is_expanded(tmp_path, monkeypatch):
    """``~`` in a path is the user's home, wherever the path was written."""
    monkeypatch.setenv("HOME", str(tmp_path))
    loaded = load(environ={"MEMORYBUS_DATA_DIR": "~/mb"}, directory=tmp_path)
    assert loaded.data_dir == tmp_path / "mb"


@pytest.mark.parametrize(
    ("text", "environ", "arguments", "source"),
    [
        ("partitons = 4", {}, {}, FILE_NAME),
        ("", {"MEMORYBUS_PARTITONS": "4"}, {}, "environment"),
        ("", {}, {"partitons": 4}, "argument"),
    ],
)
def test_an_unknown_setting_names_the_nearest(config, text, environ, arguments, source):
    """A misspelt setting is an error that says where it stands and what was probably meant."""
    config.write_text(text)
    with pytest.raises(UnknownSetting, match="did you mean 'partitions'") as unknown:
        load(environ=environ, directory=config.parent, **arguments)
    assert source in str(unknown.value)


@given(st.text(st.characters(categories=["L", "N"]), min_size=1))
def test_any_unknown_name_is_refused(name):
    """Whatever the name, it is either a setting or an error (no silent ignoring)."""
    if name.lower() not in (*FIELDS, "config"):
        with pytest.raises(UnknownSetting):
            load(environ={f"MEMORYBUS_{name}": "1"}, directory=Path(__file__).parent)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("BATCH", "many", "batch"),
        ("LEASE", "soon", "lease"),
        ("PARTITIONS", "0", "1 to 1024"),
        ("PARTITIONS", "1025", "1 to 1024"),
        ("NAMESPACE", "", "plain word"),
        ("NAMESPACE", "a{b}", "plain word"),
        ("NAMESPACE", "a*", "plain word"),
        ("CALL_TIMEOUT", "10", "shorter than lease"),
        ("HEARTBEAT", "2.1", "at most 2.0 s"),
        ("BATCH", "0", "batch must be a positive"),
        ("LEASE", "nan", "lease must be a positive"),
        ("RECALL_WAIT", "-1", "recall_wait must be a positive"),
        ("NAMESPACE", "a\nb", "plain word"),
        ("DATA_DIR", "", "data_dir is empty"),
        ("PROVIDER", "x", "JSON object"),
        ("CONFIG", "/nowhere/memorybus.toml", "/nowhere/memorybus.toml"),
        ("LOG_LEVEL", "loud", r"log_level \(MEMORYBUS_LOG_LEVEL\).*debug, info, warn"),
    ],
)
def test_a_wrong_value_names_the_setting(tmp_path, name, text, said):
    """A value that cannot be is refused with the setting's name, its bounds or its words."""
    with pytest.raises(ConfigError, match=said):
        load(environ={f"MEMORYBUS_{name}": text}, directory=tmp_path)


def test_a_broken_file_is_named(config):
    """A file that is not TOML is an error with its path."""
    config.write_text("partitions = = 4")
    with pytest.raises(ConfigError, match=FILE_NAME):
        load(environ=NOTHING, directory=config.parent)


def test_other_programs_variables_are_left_alone(tmp_path):
    """Only names that begin with MEMORYBUS_ are ours."""
    assert load(environ={"REDIS_URL": "redis://x"}, directory=tmp_path) == Settings()


def test_the_embedded_server_is_the_default_redis(tmp_path):
    """Without a URL, log and jobs live on the server in the data directory."""
    settings = Settings(data_dir=tmp_path)
    assert settings.redis_url == f"unix://{tmp_path}/redis/redis.sock"
    assert settings.redis_jobs_url == settings.redis_url


def test_the_socket_is_found_whatever_its_path(tmp_path, monkeypatch):
    """A relative directory, or one with characters that mean something in a URL, is no trap."""
    monkeypatch.chdir(tmp_path)
    for name in ("here", "a b%20c?d#e"):
        settings = load(environ=NOTHING, directory=tmp_path, data_dir=name)
        pool = redis.ConnectionPool.from_url(settings.redis_url)
        assert pool.connection_kwargs["path"] == f"{tmp_path}/{name}/redis/redis.sock"


def test_jobs_may_have_a_redis_of_their_own():
    """The jobs' Redis is the log's unless it is named."""
    both = Settings(url="redis://log", jobs_url="redis://jobs")
    assert (both.redis_url, both.redis_jobs_url) == ("redis://log", "redis://jobs")
    assert Settings(url="redis://log").redis_jobs_url == "redis://log"


def test_a_providers_table_carries_kind_and_options(config):
    """An instance may have another name than its kind; everything else is its options."""
    config.write_text(
        'providers = ["notes", "holographic"]\n[provider.notes]\nkind = "builtin"\nlimit = 10\n'
    )
    settings = load(environ=NOTHING, directory=config.parent)
    assert settings.provider_kind("notes") == "builtin"
    assert settings.provider_options("notes") == {"limit": 10}
    assert settings.provider_kind("holographic") == "holographic"
    assert settings.provider_options("holographic") == {}
    assert settings.provider_home("notes") == settings.data_dir / "providers" / "notes"


def test_every_setting_is_documented():
    """Each field stands in the docstring that says what it means and in which unit."""
    described = {line.split(":")[0].strip() for line in (Settings.__doc__ or "").splitlines()}
    assert [f.name for f in msgspec.structs.fields(Settings) if f.name not in described] == []


def test_events_are_not_larger_than_what_is_read():
    """G10: a bound of events above what readers take for an envelope is refused at once."""
    assert Settings(event_max_bytes=LARGEST_BODY).event_max_bytes == LARGEST_BODY
    with pytest.raises(ConfigError, match="event_max_bytes"):
        Settings(event_max_bytes=LARGEST_BODY + 1)


SUMMER = datetime(2026, 7, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", ["Mars/Base", "../etc/passwd", "", "a\0b"])
def test_a_zone_that_is_none_is_refused(name):
    """The error says what a name looks like; no file outside the zones is read."""
    with pytest.raises(ConfigError, match="Europe/Berlin"):
        zone_named(name)


def test_the_setting_is_checked_when_it_is_read():
    """A wrong zone ends the program at once, not at the first question."""
    with pytest.raises(ConfigError, match="Mars/Base"):
        Settings(timezone="Mars/Base")
    assert Settings(timezone="Asia/Tokyo").zone == ZoneInfo("Asia/Tokyo")


def test_a_hosts_zone_is_that_of_its_variable_or_its_file(tmp_path):
    """TZ counts first if it names a zone, then the file; without both it is UTC."""
    paris = next(file for root in TZPATH if (file := Path(root) / "Europe/Paris").exists())
    assert host_zone(":Asia/Tokyo", paris) == ZoneInfo("Asia/Tokyo")
    for unread in ("", "CET-1CEST"):
        zone = host_zone(unread, paris)
        assert SUMMER.replace(tzinfo=zone).utcoffset() == timedelta(hours=2)
    assert host_zone("", tmp_path / "none") is UTC
    broken = tmp_path / "broken"
    broken.write_text("no zone")
    assert host_zone("", broken) is UTC


def test_limits_are_no_options_of_the_provider():
    """Workers read them; the provider's own options are without."""
    table = {"kind": "builtin", "memory_limit": 5, "calls_per_second": 2, "daily_budget": 9}
    settings = Settings(provider={"notes": table})
    assert settings.provider_options("notes") == {"memory_limit": 5}
    assert settings.provider_limits("notes") == CallLimits(calls_per_second=2.0, daily_budget=9)
    assert settings.provider_limits("other") == CallLimits()


@pytest.mark.parametrize(
    "limits", [{"calls_per_second": "2"}, {"calls_per_second": -1}, {"daily_budget": 1.5}]
)
def test_a_wrong_limit_is_refused(limits):
    """A limit that is no number, or negative, is named with its provider."""
    with pytest.raises(ConfigError, match="notes"):
        Settings(provider={"notes": limits}).provider_limits("notes")
