"""``memorybus key``: make, list and revoke the keys of the gateway."""

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.ids import new_id, new_secret
from memorybus.text.times import parse_timestamp

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import (
    DEFAULT,
    Common,
    RepeatedOption,
    check_time,
    not_negative,
    operator,
)
from memorybus_console.result import IfEmpty

if TYPE_CHECKING:
    from memorybus_console.gateway.keys import ApiKey, KeyRing, NewKey, RevokedKey, Right

ID_CHARS = 12


@shown
def run_key_create(
    *,
    user: RepeatedOption = None,
    agent: Annotated[str | None, Parameter(help="The agent; '*' for every one.")] = None,
    workspace: Annotated[str | None, Parameter(help="The workspace; '*' for every one.")] = None,
    may: Annotated[
        str, Parameter(help="What it is for: publish, recall, tools, operate, metrics.")
    ] = "publish,recall,tools",
    expires: Annotated[
        str | None, Parameter(help="When it ends: ISO 8601.", validator=check_time)
    ] = None,
    per_second: Annotated[
        int,
        Parameter(help="Its most requests a second; 0 for any.", validator=not_negative),
    ] = 0,
    common: Common = DEFAULT,
) -> "NewKey":
    """Make a key, and show it this once.

    It reaches the memory of these people alone (--user may be repeated; '*' for everyone), with
    the agent and the workspace of the settings if none is given. Whoever has it can publish and
    recall as these people: give each agent its own.

    For example:

    - `memorybus key create --user ann --may publish,recall,tools`
    - `memorybus key create --user '*' --agent '*' --may metrics --expires 2027-01-01`
    """
    from memorybus_console.gateway.keys import ApiKey

    settings = common.settings()
    key = ApiKey(
        id=new_id()[-ID_CHARS:],
        agent=settings.agent if agent is None else agent,
        users=tuple(user or ()),
        workspace=settings.workspace if workspace is None else workspace,
        may=_rights(may),
        expires_at=0 if expires is None else parse_timestamp(expires),
        by=operator(),
        per_second=per_second,
    )
    with _key_ring(common) as ring:
        return create_key(settings, ring, key)


def create_key(settings: Settings, ring: "KeyRing", key: "ApiKey") -> "NewKey":
    """Make a key, and record that in the log.

    Raises:
        ConfigError: it reaches nobody, or is for nothing.
    """
    from memorybus.events import OperatorActed

    from memorybus_console.operations.stores import record_act

    key.check_reach()
    about = {"key": key.id, "agent": key.agent, "users": ", ".join(key.users)}
    about["may"] = ",".join(key.may)
    record_act(settings, OperatorActed(act="create key", operator=key.by, about=about))
    return ring.create(key, new_secret)


@shown
def run_key_list(
    *, common: Common = DEFAULT
) -> "Annotated[list[ApiKey], IfEmpty('no keys: memorybus key create makes one')]":
    """List the keys; their secrets are not kept.

    For example:

    - `memorybus key list`
    """
    with _key_ring(common) as ring:
        return ring.all()


@shown
def run_key_revoke(
    key: Annotated[str, Parameter(help="Its id, as `memorybus key list` shows it.")],
    /,
    *,
    common: Common = DEFAULT,
) -> "RevokedKey":
    """End a key at once, in every process.

    For example:

    - `memorybus key revoke 5c6e0a1b2c3d`
    """
    with _key_ring(common) as ring:
        return revoke_key(common.settings(), ring, key)


def revoke_key(settings: Settings, ring: "KeyRing", key: str) -> "RevokedKey":
    """End a key, and record that in the log.

    Raises:
        ConfigError: there is no such key.
        LogUnavailable: Redis is away.
    """
    from memorybus.events import OperatorActed

    from memorybus_console.operations.stores import record_act

    record = OperatorActed(act="revoke key", operator=operator(), about={"key": key[:100]})
    record_act(settings, record)
    return ring.revoke(key)


def _key_ring(common: Common) -> "closing[KeyRing]":
    from memorybus_console.gateway.keys import KeyRing

    return closing(KeyRing(common.settings(), SYSTEM))


def _rights(may: str) -> "tuple[Right, ...]":
    from memorybus_console.gateway.keys import RIGHTS

    names = [name.strip() for name in may.split(",") if name.strip()]
    if unknown := [name for name in names if name not in RIGHTS]:
        raise ConfigError(f"--may: {', '.join(unknown)[:100]} is none of {', '.join(RIGHTS)}")
    return tuple(right for right in RIGHTS if right in names)
