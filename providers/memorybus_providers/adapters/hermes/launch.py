"""Starts a child with its environment, its configuration and its socket."""

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec
from memorybus import private
from memorybus.ids import text_digest

from memorybus_providers.errors import MissingProvider, Unavailable

_SCRIPT: Final = Path(__file__).parent / "child" / "start.py"
_MAX_PATH_BYTES: Final = 100  # the most bytes of a Unix socket's path that every system accepts

_MAX_PID_DIGITS: Final = 10  # a number of this many digits is not a process id on any system

_PASSED_VARIABLES: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)

_SEALING_VARIABLES: Final = (
    ("HERMES_DISABLE_LAZY_INSTALLS", "1"),
    ("PIP_NO_INDEX", "1"),  # hindsight upgrades its client without asking Hermes
    ("UV_OFFLINE", "1"),
    ("HERMES_PLUGIN_HOST_PROCESS", "1"),
)
"""Environment variables that prevent a hosted plugin from installing anything at run time, and
Hermes from moving it into a process of its own (``plugins.isolation``): it is in one already."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters with which a child is started.

    Attributes:
        env: names of environment variables to pass on, whose values are masked in messages.
    """

    python: Path  # Hermes's Python
    place: Path  # a directory of the provider, for the socket, the lock and the log
    home: Path  # its HERMES_HOME
    person: Path  # the HERMES_HOME into which the person installs plugins
    plugin: str  # the plugin's name
    directory: str = ""  # the plugin's directory, if Hermes does not find it by name
    settle: str = "threads"  # what ends a write: ``threads`` or ``synchronous``
    instances: int = 32  # how many plugin instances it keeps open
    idle: float = 5.0  # seconds without any connection after which it ends
    env: tuple[str, ...] = ()

    @property
    def log(self) -> Path:
        """The file with the output of the plugin."""
        return self.place / "hermes-host.log"

    @property
    def lock(self) -> Path:
        """The lock file, which is locked while the child starts and contains its process id."""
        return self.place / "hermes-host.lock"


def hermes_home() -> Path:
    """Return the HERMES_HOME of the person who runs this process."""
    return Path(os.environ.get("HERMES_HOME") or "~/.hermes").expanduser().absolute()


def socket_path(place: Path) -> Path:
    """Return the socket's path: in `place`, or in a private directory if that path is too long.

    Raises:
        Unavailable: the private directory belongs to somebody else, or is open to others.
    """
    path = place.absolute() / "hermes-host.sock"
    if len(os.fsencode(path)) <= _MAX_PATH_BYTES:
        return path
    short = Path(tempfile.gettempdir()) / f"memorybus-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        short.mkdir(private.DIRECTORY)
    found = short.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o77 or short.is_symlink():
        raise Unavailable(f"{short} is open to others: remove it, or use a shorter data_dir")
    return short / f"{text_digest(str(path))}.sock"


def start_child(launch: Launch, path: Path, seconds: float) -> int:
    """Start a child that listens on `path`; return its process id.

    The child has detached itself when this returns, so it never becomes a zombie process of ours.
    It ends when it is unused.

    Raises:
        Unavailable: it could not be started; the message quotes what it printed.
    """
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(private.FILE)
        listener.listen(16)
        try:
            done = subprocess.run(  # noqa: S603
                [str(launch.python), "-I", str(_SCRIPT), str(listener.fileno())],
                input=msgspec.json.encode(_configuration(launch)),
                capture_output=True,
                check=True,
                cwd=launch.place,
                env=_environment(launch),
                umask=private.UMASK,
                pass_fds=(listener.fileno(),),
                timeout=seconds,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(_start_failure(launch, error)) from error
    return int(done.stdout)


def read_pid(lock: Path) -> int:
    """Return the process id in a lock file; 0 if it contains none.

    A crash may leave the file empty, and anyone who can write to the directory may write anything.
    """
    text = lock.read_text(errors="replace").strip()
    return int(text) if text.isdecimal() and text.isascii() and len(text) < _MAX_PID_DIGITS else 0


def kill_process_group(pid: int) -> None:
    """Kill a child and all processes that it started; do nothing if `pid` cannot be a child's.

    For the system, 0 means our own process group, and 1 every process to which we may send signals.
    """
    if pid <= 1:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _configuration(launch: Launch) -> dict[str, object]:
    return {
        "plugin": launch.plugin,
        "directory": launch.directory,
        "home": str(launch.home),
        "person": str(launch.person),
        "log": str(launch.log),
        "settle": launch.settle,
        "instances": launch.instances,
        "idle": launch.idle,
        "secrets": [os.environ[name] for name in launch.env if name in os.environ],
    }


def _environment(launch: Launch) -> dict[str, str]:
    handed = {n: os.environ[n] for n in (*_PASSED_VARIABLES, *launch.env) if n in os.environ}
    return {**handed, **dict(_SEALING_VARIABLES), "HERMES_HOME": str(launch.home)}


def _start_failure(launch: Launch, error: Exception) -> str:
    printed = getattr(error, "stderr", None) or b""
    tail = printed.decode(errors="replace").strip()[-500:]
    return f"{launch.python} could not host the plugin {launch.plugin}: {tail or error}"


_HERMES_MODULE: Final = "hermes_constants"
"""A module that only Hermes has; it can be found without an import."""

_ADVICE: Final = (
    "set hermes_python to the Python of a Hermes installation "
    "(the first line of the `hermes` command names it)"
)


def find_python(given: str) -> Path:
    """Return the Python that can import Hermes.

    Raises:
        MissingProvider: no such Python is found; the message names the remedy.
    """
    if given:
        return _require_file(Path(given).expanduser())
    if importlib.util.find_spec(_HERMES_MODULE) is not None:
        return Path(sys.executable)
    command = shutil.which("hermes")
    path = shebang(Path(command)) if command else None
    if path is None:
        raise MissingProvider(f"no Hermes installation is found: {_ADVICE}")
    return _require_file(path)


def shebang(script: Path) -> Path | None:
    """Return the path of the Python that a script's first line names; None if it names none."""
    with script.open("rb") as file:
        first = file.readline(1_024).decode(errors="replace").strip()
    if not first.startswith("#!"):
        return None
    program = Path(first[2:].strip().split(" ")[0])
    return program if "python" in program.name else None


def _require_file(python: Path) -> Path:
    if not python.is_file():
        raise MissingProvider(f"{python} is not there: {_ADVICE}")
    return python
