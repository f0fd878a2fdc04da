"""``memorybus claude``, ``codex``, ``hook``: memory for Claude Code and Codex, by their hooks."""

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from cyclopts import Parameter
from memorybus import private
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LogError, LogUnavailable
from memorybus.health.metrics_server import is_loopback
from memorybus.ids import new_id, text_digest

from memorybus_console.cli.answers import shown
from memorybus_console.cli.keys import ID_CHARS, create_key, revoke_key
from memorybus_console.cli.options import (
    DEFAULT,
    AgentOption,
    Common,
    UserOption,
    WorkspaceOption,
    operator,
)
from memorybus_console.cli.serving import PORT
from memorybus_console.result import Presentation, Remark
from memorybus_console.views.render import line

if TYPE_CHECKING:
    from memorybus_console.gateway.keys import NewKey
    from memorybus_console.operations.hook_settings import HookHost

HostFolderOption = Annotated[
    Path | None, Parameter(help="The program's folder; by default ~/.claude or ~/.codex.")
]
ProjectOption = Annotated[
    bool, Parameter(negative="", help="Only in this project: .claude/settings.local.json.")
]
GatewayOption = Annotated[
    str, Parameter(help="HOST:PORT where memorybus serve --api listens on this machine.")
]


class HooksInstalled(msgspec.Struct, frozen=True):
    """What was written for a program: its settings, and whether they changed."""

    settings: str
    changed: bool
    folder: str
    gateway: str
    key_id: str


class HooksUninstalled(msgspec.Struct, frozen=True):
    """Whether hooks stood in a program's settings, and the key of theirs that has ended ("")."""

    settings: str
    changed: bool
    revoked_key: str


@shown
def run_claude_install(
    *,
    project: ProjectOption = False,
    user: UserOption = None,
    agent: AgentOption = None,
    workspace: WorkspaceOption = None,
    home: HostFolderOption = None,
    gateway: GatewayOption = f"127.0.0.1:{PORT}",
    common: Common = DEFAULT,
) -> Presentation[HooksInstalled]:
    """Write hooks into Claude Code's settings; a second run changes nothing.

    From then on its turns are published, and each prompt gets what memory has about it. The hooks
    use the gateway, `memorybus serve --api`; while it does not run, Claude Code works as without
    them, and what was said is read later.

    For example:

    - `memorybus claude install --user ann`
    - `memorybus claude install --project --workspace shop`
    """
    from memorybus_console.operations.hook_settings import CLAUDE_CODE

    place = _place(CLAUDE_CODE, home, common.settings(), project=project)
    return _install(place, Scoped(user, agent, workspace), gateway)


@shown
def run_claude_uninstall(
    *,
    project: ProjectOption = False,
    home: HostFolderOption = None,
    common: Common = DEFAULT,
) -> HooksUninstalled:
    """Take the hooks out of Claude Code's settings, which are then as they were before.

    The key that install made for them ends, and its file is deleted.

    For example:

    - `memorybus claude uninstall`
    """
    from memorybus_console.operations.hook_settings import CLAUDE_CODE

    return _uninstall(_place(CLAUDE_CODE, home, common.settings(), project=project))


@shown
def run_codex_install(
    *,
    user: UserOption = None,
    agent: AgentOption = None,
    workspace: WorkspaceOption = None,
    home: HostFolderOption = None,
    gateway: GatewayOption = f"127.0.0.1:{PORT}",
    common: Common = DEFAULT,
) -> Presentation[HooksInstalled]:
    """Write hooks into Codex's hooks.json; a second run changes nothing.

    Codex asks once whether it may run them. See `memorybus claude install` for what they do.

    For example:

    - `memorybus codex install --user ann`
    """
    from memorybus_console.operations.hook_settings import CODEX

    return _install(_place(CODEX, home, common.settings()), Scoped(user, agent, workspace), gateway)


@shown
def run_codex_uninstall(
    *, home: HostFolderOption = None, common: Common = DEFAULT
) -> HooksUninstalled:
    """Take the hooks out of Codex's hooks.json, which is then as it was before.

    For example:

    - `memorybus codex uninstall`
    """
    from memorybus_console.operations.hook_settings import CODEX

    return _uninstall(_place(CODEX, home, common.settings()))


def run_hook(
    host: Annotated[str, Parameter(help="claude-code or codex.")],
    /,
    *given: Annotated[str, Parameter(help="What Codex's notify gives; else it is read.")],
    common: Common = DEFAULT,
) -> int:
    """Run a hook as Claude Code or Codex does; `memorybus-hook` does the same, and starts faster.

    For example:

    - `memorybus hook claude-code < input.json`
    """
    from memorybus_console.hooks.entry import main

    return main([host, str(common.settings().data_dir / "hooks" / host), *given])


class Scoped(NamedTuple):
    """Whose memory hooks use; None for what the gateway's key or settings name."""

    user: str | None
    agent: str | None
    workspace: str | None

    def named(self) -> dict[str, str]:
        """Return what is given."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class HookPlace(NamedTuple):
    """Where a program's hooks stand, and where they keep what they need."""

    host: "HookHost"
    file: Path
    home: Path
    folder: Path
    settings: Settings


def _place(
    host: "HookHost", home: Path | None, settings: Settings, *, project: bool = False
) -> HookPlace:
    """Return the place of the hooks; those of a project stand in a file that is not shared."""
    home = (home or Path.home() / host.folder).absolute()
    file, folder = home / host.settings, settings.data_dir / "hooks" / host.name
    if project:
        file = Path(host.folder).absolute() / "settings.local.json"
        folder = folder.with_name(f"{host.name}-{text_digest(str(file))}")
    return HookPlace(host, file, home, folder, settings)


def _install(place: HookPlace, owner: Scoped, gateway: str) -> Presentation[HooksInstalled]:
    from memorybus_console.hooks import entry
    from memorybus_console.operations.hook_settings import write_hooks

    address, _, port = gateway.rpartition(":")
    if not port.isdecimal() or not is_loopback(address):
        raise ConfigError(f"{gateway}: hooks use a gateway of this machine, as 127.0.0.1:{PORT}")
    host, file, folder = place.host, place.file, place.folder
    private.directory(folder / entry.SESSIONS)
    kept = _read_config(folder / entry.CONFIG)
    key, key_id = kept.get("key", ""), kept.get("made_key", "")
    if not key and (made := _new_key(place.settings, owner)):
        key, key_id = made.token, made.id
    transcripts = str(place.home / host.transcripts)
    config = {"host": address, "port": int(port), "key": key, "made_key": key_id}
    config |= {"owner": owner.named(), "transcripts": transcripts}
    private.write(folder / entry.CONFIG, msgspec.json.encode(config))
    changed = write_hooks(file, host, folder)
    done = HooksInstalled(str(file), changed, str(folder), gateway, key_id)
    parts = [
        line(f"{file}: {'hooks written' if changed else 'nothing to change'}"),
        line("next, each in a terminal of its own:"),
        line("    memorybus up"),
        line(f"    memorybus serve --api{'' if int(port) == PORT else f' --port {port}'}"),
    ]
    log = folder / entry.LOG
    return Presentation(done, parts, [Remark(f"then start it anew; {log} names what goes wrong")])


def _read_config(config: Path) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = msgspec.json.decode(config.read_bytes())
    except FileNotFoundError:
        return {}
    return kept


def _new_key(settings: Settings, owner: Scoped) -> "NewKey | None":
    """Return a key for the hooks; None as long as no program of this machine needs one."""
    from memorybus_console.gateway.keys import ApiKey, KeyRing

    with suppress(LogError), closing(KeyRing(settings, SYSTEM)) as ring:
        if not ring.is_empty():
            key = ApiKey(
                id=new_id()[-ID_CHARS:],
                agent=owner.agent or settings.agent,
                users=(owner.user or settings.user,),
                workspace=settings.workspace if owner.workspace is None else owner.workspace,
                may=("publish", "recall"),
                by=operator(),
            )
            return create_key(settings, ring, key)
    return None


def _uninstall(place: HookPlace) -> HooksUninstalled:
    from memorybus_console.hooks import entry
    from memorybus_console.operations.hook_settings import remove_hooks

    changed = remove_hooks(place.file, place.folder)
    config = place.folder / entry.CONFIG
    made = str(_read_config(config).get("made_key", ""))
    if made:
        _revoke(place.settings, made)
    config.unlink(missing_ok=True)
    return HooksUninstalled(str(place.file), changed, made)


def _revoke(settings: Settings, key: str) -> None:
    """End the hooks' key; one that has ended already is no error."""
    from memorybus_console.gateway.keys import KeyRing

    try:
        with suppress(ConfigError), closing(KeyRing(settings, SYSTEM)) as ring:
            revoke_key(settings, ring, key)
    except LogError as error:
        raise LogUnavailable(
            f"the hooks are out, but their key {key} is still valid: {error}; then uninstall again"
        ) from error
