"""One frozen `Settings`, read from ``memorybus.toml``, then ``MEMORYBUS_*``, then arguments.

This is the only module that reads the environment. Every default is written here, once.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import msgspec
import platformdirs

from memorybus.config.model_settings import ModelSettings, check_derivers
from memorybus.config.parsing import (
    PREFIX,
    check_names,
    check_numbers,
    check_size,
    convert_settings,
    format_value,
    parse_table,
    secrets_in,
)
from memorybus.config.path_names import check_name
from memorybus.config.redis_urls import check_urls, place_of
from memorybus.config.secrets_file import SECRETS_NAME, read_secrets
from memorybus.errors import ConfigError
from memorybus.ids import text_digest
from memorybus.msgspec_types import prepared
from memorybus.text.redact import masked


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many write calls all workers may make to one provider instance.

    Attributes:
        calls_per_second: how many calls of its write hooks all workers may make a second, on
            average; the calls of a second may come at once; 0 for no limit.
        daily_budget: how many calls of its write hooks all workers may make a day (UTC); 0 for no
            limit.
    """

    calls_per_second: Annotated[float, msgspec.Meta(ge=0), "calls/s"] = 0.0
    daily_budget: Annotated[int, msgspec.Meta(ge=0), "calls/day"] = 0


LIMITS = CallLimits.__struct_fields__
"""The keys of an instance's table that only workers read; providers do not get them."""


FILE_NAME = "memorybus.toml"
Seconds = Annotated[float, "seconds"]
Bytes = Annotated[int, "bytes"]
Characters = Annotated[int, "characters"]
Events = Annotated[int, "events"]
LogForm = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
_WORD = re.compile(r"[\w.-]+")


def _default_data_dir() -> Path:
    """Return the user's own directory for data.

    Raises:
        ConfigError: the user has no home.
    """
    path = Path(platformdirs.user_data_dir("memorybus"))
    if not path.is_absolute():  # a home that is not known stays "~"
        raise ConfigError(
            "this user has no home directory, so that there is no data_dir; set HOME, "
            "MEMORYBUS_DATA_DIR or --data-dir"
        )
    return path


_MAX_HEARTBEAT_SECONDS = 2.0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be configured; people read these meanings (`config show`, ``--help``).

    Attributes:
        url: Redis of the log: one server, sentinels or a cluster; empty means the embedded server
            of `memorybus up`, on a socket in `data_dir`.
        jobs_url: Redis of the RQ jobs, no cluster; empty means the same as `url`.
        namespace: prefix of every Redis key.
        partitions: how many streams the log is created with.
        data_dir: directory of spools, the embedded server's data and local providers' state.
        agent: default agent identity.
        user: default user.
        workspace: default workspace.
        platform: default platform.
        providers: provider instances, in the order in which their recall is shown.
        provider: one table per instance; ``kind`` names the provider, the other keys are options.
        spool_max_bytes: how many bytes of events one process's spool may hold before `SpoolFull`,
            including sent events that it still keeps.
        spool_keep: how long an event stays in the spool after Redis took it.
        spool_reserve: size of a file that is deleted when the disk is full, so that the spool can
            still be sent.
        event_max_bytes: size of the largest encoded event.
        compress_min_bytes: size from which events are compressed in the log, if that saves space.
        dedupe_window: how long the log remembers an event id.
        dedupe_max_ids: how many event ids a partition remembers at most (per half window).
        lease: how long a lane's lease lasts without renewal.
        call_timeout: how long a provider call may take; must be shorter than `lease`.
        heartbeat: how often a worker shows that it lives, and reads what other workers and
            operators want of it; 2 at most, so that the others do not consider it dead.
        batch: how many events a lane reads and commits at once.
        window: how many events a lane may work on beyond its checkpoint.
        concurrency: how many calls at once a worker makes to an instance that allows several.
        capacity: this worker's weight when workers share out lanes.
        grace: how long a worker may take to end after a signal before it ends at once.
        attempts: how often an event with transient failures is tried before it is parked.
        recall_ttl: how long a warm result lives.
        recall_budget: size of a memory block.
        recall_wait: how long a recall job waits for the session's last event to be applied.
        recall_timeout: how long one recall job may run.
        prompt_budget: size of the text that providers add to a session's system prompt; 0 for none.
        prompt_ttl: how long the system prompt's text stays ready for a person's next session.
        derivers: what concludes summaries, topics and profiles from the facts of the first instance
            that keeps any; empty for nothing.
        derive_every_turns: after how many turns of a session something is derived, besides its end
            and its compressions.
        model: the model that derivers and the curator may ask: ``base_url`` (any endpoint that is
            compatible with OpenAI's), ``name``, ``api_key_env`` or ``api_key_file``, limits of
            calls and tokens, and prices.
        timezone: the time zone of days, such as ``Europe/Berlin``: for "yesterday" in a question,
            and for the dates in a block. Empty means the zone of the host that recalls.
        prefetch_deadline: how long `prefetch` may wait until Redis has returned what is warm.
        prefetch_wait: how long `prefetch` may wait, beyond `prefetch_deadline`, for providers that
            have no answer to the prompt ready; 0 for not at all.
        recorded_prompts: of how many prompts the log keeps, for as long as `hot_window` says, the
            memories that they were given: 1 for all, 0 for none.
        reply_max_bytes: size of the largest reply of a provider: a tool's result, or a
            contribution.
        contribution_budget: size of what providers contribute to a compression's summary.
        compress_wait: how long a host's compression waits for contributions to its summary; 120 at
            most.
        tool_wait: how long a host's tool call waits for its result.
        turn_budget: size of the recall that a host injects at one turn, if every later request
            repeats it.
        opening_wait: how long a new session may wait for the first system prompt of its
            person.
        archive: where sealed segments of the log lie: a directory, or the URL of an object store
            (``s3://``, ``gs://``, ``az://``, ``file://``) that every worker reaches. Empty means
            ``archive`` in `data_dir`, which belongs to one host, like a local provider's state.
        segment_events: how many events a segment contains.
        segment_age: how old the first unsealed event may be before a smaller segment is sealed.
        seal_after: how old an event must be to be sealed; more than the time that Redis may
            lose.
        hot_window: how long a sealed event stays in the log.
        retention: how long history is kept, by scope: ``default``, ``user:NAME``, ``agent:NAME``,
            ``workspace:NAME``, ``platform:NAME``; 0 means without end. The shortest time that
            applies to an event counts.
        curator_every: how often a worker looks for memories that have grown old; 0 for never.
        stale_after: how long nobody used a memory that becomes stale.
        archive_after: how long nobody used one that is archived, and is in prompts no more.
        secrets_file: a file that only its user may read, with variables that workers add to their
            environment; ``memorybus.secrets.toml`` next to ``memorybus.toml`` if it exists.
        secret_variables: environment variables whose values are masked wherever text is kept or
            shown; a worker adds those of its `secrets_file`.
        log: the form of workers' log lines: text for people, or a JSON object on each line.
        log_level: the lowest level that workers log. Agents configure their own logging.
        page_token: the argon2 hash of the token with which operators sign in at the page
            (`memorybus config page-token` makes one); without a token and a proxy the page makes a
            token of its own, and strangers see counts.
        page_proxy_header: the header in which a proxy names the person who is signed in
            (``X-Forwarded-User``); empty means that the page trusts no header.
        page_proxies: the addresses of proxies that the page trusts. Nobody else may reach the page
            from these addresses.
        page_hosts: names by which browsers reach the page, in addition to ``localhost`` and
            addresses.
        crash_at: the named crash point at which the process kills itself; for fault tests.
    """

    url: str = ""
    jobs_url: str = ""
    namespace: str = "mb"
    partitions: Annotated[int, "streams"] = 16
    data_dir: Path = msgspec.field(default_factory=_default_data_dir)
    agent: str = "default"
    user: str = "default"
    workspace: str = ""
    platform: str = ""
    providers: tuple[str, ...] = ("builtin", "holographic")
    provider: dict[str, dict[str, Any]] = {}
    spool_max_bytes: Bytes = 1 << 30
    spool_keep: Seconds = 5.0
    spool_reserve: Bytes = 4 << 20
    event_max_bytes: Bytes = 1 << 20
    compress_min_bytes: Bytes = 2_048
    dedupe_window: Seconds = 86_400.0
    dedupe_max_ids: Annotated[int, "ids"] = 200_000
    lease: Seconds = 10.0
    call_timeout: Seconds = 8.0
    heartbeat: Seconds = 1.0
    batch: Events = 500
    window: Events = 1024
    concurrency: Annotated[int, "calls"] = 16
    capacity: float = 1.0
    grace: Seconds = 25.0
    attempts: Annotated[int, "tries"] = 5
    recall_ttl: Seconds = 3_600.0
    recall_budget: Characters = 2_000
    recall_wait: Seconds = 2.0
    recall_timeout: Seconds = 10.0
    prompt_budget: Characters = 4_000
    prompt_ttl: Seconds = 604_800.0
    derivers: tuple[str, ...] = ("extractive",)
    derive_every_turns: Annotated[int, "turns"] = 20
    model: ModelSettings = ModelSettings()
    timezone: str = ""
    prefetch_deadline: Seconds = 0.05
    prefetch_wait: Seconds = 0.25
    recorded_prompts: Annotated[float, "share"] = 1.0
    reply_max_bytes: Bytes = 65_536
    contribution_budget: Characters = 4_000
    compress_wait: Seconds = 2.0
    tool_wait: Seconds = 10.0
    turn_budget: Characters = 800
    opening_wait: Seconds = 0.3
    archive: str = ""
    segment_events: Events = 10_000
    segment_age: Seconds = 600.0
    seal_after: Seconds = 60.0
    hot_window: Seconds = 3_600.0
    retention: Annotated[dict[str, float], "seconds"] = {}
    curator_every: Seconds = 86_400.0
    stale_after: Seconds = 2_592_000.0
    archive_after: Seconds = 7_776_000.0
    secrets_file: str = ""
    secret_variables: tuple[str, ...] = ()
    log: LogForm = "text"
    log_level: LogLevel = "info"
    page_token: str = ""
    page_proxy_header: str = ""
    page_proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    page_hosts: tuple[str, ...] = ()
    crash_at: str = ""

    def __post_init__(self) -> None:
        """Refuse values that are impossible or contradict each other."""
        if not 1 <= self.partitions <= 1024:
            raise ConfigError(f"partitions must be 1 to 1024, not {self.partitions}")
        check_numbers({name: getattr(self, name) for name in FIELDS})
        check_size(self.event_max_bytes)
        if self.call_timeout >= self.lease:
            raise ConfigError(
                f"call_timeout ({self.call_timeout} s) must be shorter than lease "
                f"({self.lease} s): a call that outlives its lease cannot be fenced"
            )
        if self.heartbeat > _MAX_HEARTBEAT_SECONDS:
            raise ConfigError(
                f"heartbeat ({self.heartbeat} s) must be at most {_MAX_HEARTBEAT_SECONDS} s: other "
                "workers consider a worker dead after that silence"
            )
        if self.archive_after < self.stale_after:
            raise ConfigError(
                f"archive_after ({self.archive_after} s) must not be shorter than stale_after "
                f"({self.stale_after} s): a memory is stale before it is archived"
            )
        check_derivers(self.derivers, self.model)
        check_urls(self.url, self.jobs_url)
        if self.timezone:
            _ = self.zone
        if not self.namespace or not _WORD.fullmatch(self.namespace):
            raise ConfigError(f"namespace {self.namespace!r} must be a plain word")
        for name in (*self.providers, *self.provider):
            check_name(name)

    def __repr__(self) -> str:
        """Show everything except credentials: the text may end up in an error or a log."""
        return masked(super().__repr__(), self.secrets)

    @property
    def secrets(self) -> frozenset[str]:
        """The credentials in these settings, and the values of `secret_variables`.

        Credentials are passwords in URLs, and options with names such as ``token``.
        """
        named = (os.environ.get(name, "").strip() for name in self.secret_variables)
        return frozenset(filter(None, (*secrets_in(msgspec.structs.asdict(self)), *named)))

    @property
    def zone(self) -> tzinfo:
        """The zone of `timezone`, or of this host."""
        from memorybus.config.parsing import host_zone, zone_named  # loads slowly; agents need none

        return zone_named(self.timezone) if self.timezone else host_zone(os.environ.get("TZ", ""))

    @property
    def socket_path(self) -> Path:
        """The embedded server's unix socket."""
        return self.data_dir / "redis" / "redis.sock"

    @property
    def redis_url(self) -> str:
        """The Redis of the log: `url`, or the embedded server."""
        return self.url or f"unix://{quote(str(self.socket_path.absolute()))}"

    @property
    def redis_jobs_url(self) -> str:
        """The Redis of the RQ jobs."""
        return self.jobs_url or self.redis_url

    @property
    def spool_dir(self) -> Path:
        """The directory of this host's spools for this log: no log gets another log's events."""
        return self.data_dir / "spool" / self.log_name

    @property
    def sessions_path(self) -> Path:
        """The file in which this host notes the sessions of this log."""
        return self.data_dir / "sessions" / f"{self.log_name}.db"

    @property
    def tools_path(self) -> Path:
        """The file in which this host notes the tools that this log's providers offer."""
        return self.data_dir / "tools" / f"{self.log_name}.json"

    @property
    def page_token_path(self) -> Path:
        """The file that keeps the page's own token, if the settings name none."""
        return self.data_dir / "page.token"

    @property
    def log_name(self) -> str:
        """A name for this log on this host: its namespace and a digest of where its Redis is."""
        return f"{self.namespace}-{text_digest(place_of(self.redis_url))}"

    @property
    def models_dir(self) -> Path:
        """The directory of this host's models, which providers embed texts with."""
        return self.data_dir / "models"

    def provider_home(self, name: str) -> Path:
        """The directory of one provider instance's local state."""
        return self.data_dir / "providers" / name

    def provider_kind(self, name: str) -> str:
        """The registered provider behind an instance name."""
        return str(self.provider.get(name, {}).get("kind", name))

    def provider_options(self, name: str) -> dict[str, Any]:
        """The options of one instance, without its kind."""
        table = self.provider.get(name, {})
        return {k: v for k, v in table.items() if k != "kind" and k not in LIMITS}

    def provider_limits(self, name: str) -> CallLimits:
        """How many calls one instance may make.

        Raises:
            ConfigError: a limit is no number, or negative.
        """
        table = {k: v for k, v in self.provider.get(name, {}).items() if k in LIMITS}
        try:
            return msgspec.convert(table, prepared(CallLimits))
        except msgspec.ValidationError as error:
            raise ConfigError(f"provider {name}: {error}") from error


FIELDS = tuple(f.name for f in msgspec.structs.fields(Settings))
SettingOrigin = Literal["beside", "file", "environment", "argument"]
"""Where a value comes from; ``beside``: from a secrets file next to the file of settings."""


def load(
    *,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
    file: Path | None = None,
    **overrides: Any,
) -> Settings:
    """Read the settings in order: file, environment, arguments; later ones win.

    Args:
        environ: the environment; the process's own if None.
        directory: where to search for ``memorybus.toml`` if ``MEMORYBUS_CONFIG`` names no file;
            the working directory if None.
        file: a file to read instead.
        overrides: settings by name; None counts as not given.

    Raises:
        UnknownSetting: there is no setting of that name; the message names the nearest one.
        ConfigError: a value of the wrong type, or a file that cannot be read.
    """
    values: dict[str, Any] = {}
    for layer in read_layers(environ=environ, directory=directory, file=file, **overrides):
        values |= layer.values
    return convert_settings(values, Settings)


class Layer(msgspec.Struct, frozen=True):
    """Values of one origin, which replace those of the layers before it.

    Attributes:
        kind: their origin.
        path: the file, if they come from one.
        values: settings by name, as they were written.
    """

    kind: SettingOrigin
    values: Mapping[str, Any]
    path: Path | None = None


def read_layers(
    *,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
    file: Path | None = None,
    **overrides: Any,
) -> list[Layer]:
    """Return what `load` reads, as layers of which the last one wins.

    Arguments and errors are those of `load`.
    """
    env = os.environ if environ is None else environ
    path = file or config_path(env, directory)
    given = {name: value for name, value in overrides.items() if value is not None}
    check_names(given, "argument", FIELDS)
    return [
        Layer("beside", _secrets_beside(path), path and path.absolute().with_name(SECRETS_NAME)),
        Layer("file", _read_file(path), path),
        Layer("environment", _read_environ(env)),
        Layer("argument", given),
    ]


def config_path(
    environ: Mapping[str, str] | None = None, directory: Path | None = None
) -> Path | None:
    """Return the file that `load` reads, None if there is none."""
    named = (os.environ if environ is None else environ).get(PREFIX + "CONFIG")
    if named:
        return Path(named)
    try:
        candidate = (directory or Path.cwd()) / FILE_NAME
    except FileNotFoundError as error:
        raise ConfigError(
            f"the working directory was deleted, so that no {FILE_NAME} can be searched there; "
            f"change to another directory"
        ) from error
    return candidate if candidate.exists() else None


def _secrets_beside(path: Path | None) -> dict[str, Any]:
    secrets = path and path.resolve().with_name(SECRETS_NAME)
    return {"secrets_file": str(secrets)} if secrets and secrets.exists() else {}


def _read_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        values = tomllib.loads(path.read_text("utf-8-sig"))  # some editors write a BOM
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no UTF-8 text: save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from error
    check_names(values, str(path), FIELDS)
    return values


def _read_environ(env: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {
        name[len(PREFIX) :].lower(): value
        for name, value in env.items()
        if name.startswith(PREFIX) and name != PREFIX + "CONFIG"
    }
    check_names(values, "environment", FIELDS)
    for name in ("providers", "derivers", "secret_variables", "page_proxies", "page_hosts"):
        if name in values:
            values[name] = [word.strip() for word in values[name].split(",") if word.strip()]
    for name in ("provider", "retention", "model"):
        if name in values:
            values[name] = parse_table(name, values[name])
    return values


def is_variable_set(variable: str) -> bool:
    """Return whether an environment variable has a value in this process."""
    return bool(os.environ.get(variable))


def read_variable(name: str) -> str:
    """Return an environment variable that is not a setting, such as a key; "" if it is not set."""
    return os.environ.get(name, "")


def load_secrets(settings: Settings) -> Settings:
    """Add the variables of the secrets file to this process's environment, unless they are set.

    It returns the settings with the names of these variables in `secret_variables`. Processes that
    open providers call it before they start a thread.

    Raises:
        ConfigError: others may read the file, or it cannot be read.
    """
    if not settings.secrets_file:
        return settings
    secrets = read_secrets(Path(settings.secrets_file).expanduser())
    for name, value in secrets.items():
        os.environ.setdefault(name, value)
    names = tuple(dict.fromkeys((*settings.secret_variables, *secrets)))
    return msgspec.structs.replace(settings, secret_variables=names)


def to_environ(settings: Settings, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment from which `load` reads these settings, for child processes.

    Args:
        settings: the child's settings.
        base: the rest of its environment; this process's own if None.
    """
    env = os.environ if base is None else base
    kept = {name: value for name, value in env.items() if not name.startswith(PREFIX)}
    return kept | {PREFIX + name.upper(): format_value(getattr(settings, name)) for name in FIELDS}
