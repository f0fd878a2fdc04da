"""The errors that callers may catch by name; commands have a few more, each next to its code.

::

    MemoryBusError
    ├── ConfigError ── UnknownSetting
    ├── EventError ── InvalidEvent, EventTooLarge, CorruptEnvelope
    ├── SpoolError ── SpoolFull, SpoolCorrupt
    ├── LogError ── LogUnavailable ── AccessDenied
    │            ├─ WrongPartitionCount, UnsafeRedis, ForeignKey, MissingEvent
    ├── ArchiveError ── ArchiveUnavailable, ArchiveDamaged ── SegmentDamaged
    │                └─ ArchiveDiffers, ArchiveTaken
    ├── EmbeddedError ── NoServerBinary, ServerFailed
    ├── LanesOwned
    ├── RecallError ── NoWorker
    └── ProviderError ── Transient ── Unavailable ── ProviderHung
                      ├─ Permanent
                      ├─ LeaseLost
                      └─ MissingProvider

    LeaseLost (BaseException): not a failure; the lane has another owner and stops quietly
"""


class MemoryBusError(Exception):
    """Base of all errors of the bus. The message says what, why and what to do next."""


class ConfigError(MemoryBusError):
    """A setting is missing, malformed or contradicts another."""


class UnknownSetting(ConfigError):
    """A setting does not exist; the message names the nearest known one."""


class EventError(MemoryBusError):
    """An event cannot be accepted or read."""


class InvalidEvent(EventError):
    """An event's fields do not make sense (empty id, unknown action, wrong type)."""


class EventTooLarge(EventError):
    """An encoded event exceeds ``event_max_bytes``."""


class CorruptEnvelope(EventError):
    """Bytes in the log or the spool are not an envelope."""


class SpoolError(MemoryBusError):
    """The local outbox cannot take or give an event."""


class SpoolFull(SpoolError):
    """The spool's declared bound, or its disk, is full: the event was not accepted (G1, G10)."""


class SpoolCorrupt(SpoolError):
    """A spool file is damaged; it was renamed to the name in the message."""


class LogError(MemoryBusError):
    """The log in Redis cannot be used."""


class LogUnavailable(LogError):
    """Redis does not answer, or answers that it cannot serve now.

    Attributes:
        problem: what happened, without the remedy.
        remedy: what to do; "" if the problem says it.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}; {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy


class AccessDenied(LogUnavailable):
    """Redis refuses the user or the password, or that user lacks a permission.

    A process that starts ends with this error; one that runs keeps trying, since credentials may
    change.
    """


class WrongPartitionCount(LogError):
    """The log was created with another number of partitions."""


class LogReplaced(LogError):
    """The log was wiped, or replaced by another one: what was known of it is worth nothing now."""


class UnsafeRedis(LogError):
    """The server's configuration would lose events (an evicting maxmemory policy)."""


class ForeignKey(LogError):
    """A key of ours has a value of another kind: another program writes under our namespace."""


class MissingEvent(LogError):
    """Neither the log nor the archive has an event with that id."""


class ArchiveError(MemoryBusError):
    """The archive of the log cannot be used."""


class ArchiveUnavailable(ArchiveError):
    """The archive's store does not answer or is full, or the extra ``archive`` is missing."""


class ArchiveDamaged(ArchiveError):
    """A part of the archive is damaged; the message names it. The rest is readable."""


class SegmentDamaged(ArchiveDamaged):
    """One segment cannot be read while its rows are being written again.

    Attributes:
        sha256: the segment's checksum, as the manifest says.
    """

    def __init__(self, why: str, sha256: str) -> None:
        super().__init__(why)
        self.sha256 = sha256


class ArchiveDiffers(ArchiveError):
    """The archive lacks entries of the log from before its own end: nothing may be trimmed (G7)."""


class ArchiveTaken(ArchiveError):
    """Another writer published to the partition's archive first: this one is stale (G5, G7)."""


class EmbeddedError(MemoryBusError):
    """The local Redis server cannot be started or reached."""


class NoServerBinary(EmbeddedError):
    """No redis-server or valkey-server was found; the message names the install command."""


class ServerFailed(EmbeddedError):
    """The local server started and ended, or never answered; the message carries its log's tail."""


class LanesOwned(MemoryBusError):
    """Live workers own lanes of a provider whose lanes must have no owner now: stop them first."""


class RecallError(MemoryBusError):
    """A recall cannot be answered."""


class NoWorker(RecallError):
    """No live worker serves recall jobs; ``memorybus up`` starts one."""


class ProviderError(MemoryBusError):
    """A memory provider failed. An error of a provider that is no subclass counts as Permanent."""


class Transient(ProviderError):
    """Another try may succeed: the cause is a time-out, a conflict or a rate limit."""


class Unavailable(Transient):
    """The whole backend is down: the lane waits, and nothing is parked."""


class ProviderHung(Unavailable):
    """A call outlived its deadline and was abandoned; what it has sent may still take effect."""


class Permanent(ProviderError):
    """The event will never be accepted: its key is parked (G6)."""


class MissingProvider(ProviderError):
    """There is no provider of that name, or its optional dependency is not installed."""


class LeaseLost(BaseException):
    """The lane has another owner, or may have one: stop. ``except Exception`` must not catch this.

    Attributes:
        fenced: whether a write was refused because its epoch is not the lane's newest (G5).
    """

    def __init__(self, why: str, *, fenced: bool = False) -> None:
        super().__init__(why)
        self.fenced = fenced


NEEDS_A_PERSON = (
    AccessDenied,
    ConfigError,
    ForeignKey,
    MissingProvider,
    UnsafeRedis,
    WrongPartitionCount,
)
"""Errors that another worker would meet too: a person has to act."""


def error_named(kind: str, message: str, remedy: str = "") -> MemoryBusError:
    """Return the error that a child process reported, by its class name; else the base class."""
    kind_of_error = globals().get(kind)
    if isinstance(kind_of_error, type) and issubclass(kind_of_error, LogUnavailable):
        return kind_of_error(message, remedy)
    if isinstance(kind_of_error, type) and issubclass(kind_of_error, MemoryBusError):
        return kind_of_error(message)
    return MemoryBusError(message)


def install_command(extra: str = "", name: str = "memorybus") -> str:
    """Return the command that installs a distribution with an extra, from where it came.

    A checkout and a wheel are named by their path: only what came from a package index is there.
    """
    # Imported late: only a process that lacks a library comes here.
    import json
    import shlex
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        origin = distribution(name).read_text("direct_url.json")
    except PackageNotFoundError:
        origin = None
    extras = f"[{extra}]" if extra else ""
    if origin is None:
        return f"pip install '{name}{extras}'"
    record = json.loads(origin)
    url, editable = record["url"], record.get("dir_info", {}).get("editable", False)
    path = unquote(urlsplit(url).path) if url.startswith("file:") else ""
    what = f"{path}{extras}" if path else f"{name}{extras} @ {url}"
    return f"pip install {'-e ' if editable else ''}{shlex.quote(what)}"
