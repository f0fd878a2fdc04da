"""Keys of the gateway: who may call it, about whom, and for what.

A key is shown once. Redis keeps its SHA-256: the secret has 256 random bits, so that a slow hash
would add nothing. Every request reads its key, so that a revoked one ends at once in every process.
"""

import hmac
from collections.abc import Sequence
from typing import Annotated, Final, Literal, get_args

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LogUnavailable, MemoryBusError
from memorybus.events import Scope
from memorybus.ids import NewSecret, sha256
from memorybus.msgspec_types import prepared
from memorybus.redis.connect import ask_redis, connect_redis
from memorybus.redis.hashes import decode_readable
from memorybus.redis.keys import Keys

from memorybus_console.result import HIDDEN, TIME, Result

Right = Literal["publish", "recall", "tools", "operate", "metrics"]
RIGHTS: Final[tuple[Right, ...]] = get_args(Right)

ANY: Final = "*"
"""Stands for every agent, person or workspace; it has to be written out."""

_PREFIX: Final = "mbk"
_MOST_USERS: Final = 1_000


class NoAccess(MemoryBusError):
    """A caller has no key, or a key that has ended."""


class NotAllowed(MemoryBusError):
    """A key does not allow what its caller asks for."""


class ApiKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a key allows.

    Attributes:
        id: its public name, for lists and records.
        agent: the agent whose memory it reaches; ``*`` for every one.
        users: the people; ``*`` for every one.
        workspace: the workspace; "" for none, ``*`` for every one.
        may: what it is for.
        expires_at: when it ends, milliseconds; 0 for never.
        created_at: when it was made, milliseconds.
        by: who made it, as ``user@host``.
        per_second: the most requests a second, for each process of the gateway; 0 for any number.
        digest: the SHA-256 of its secret.
    """

    id: str
    agent: str
    users: tuple[str, ...]
    workspace: Annotated[str, HIDDEN] = ""
    may: tuple[Right, ...]
    expires_at: Annotated[int, TIME] = 0
    created_at: Annotated[int, TIME] = 0
    by: str = ""
    per_second: int = 0
    digest: Annotated[str, HIDDEN] = ""

    def check_reach(self) -> None:
        """Raise `ConfigError` if the key reaches nobody, or is for nothing."""
        if not self.agent or not self.users or len(self.users) > _MOST_USERS:
            raise ConfigError(
                f"a key needs an agent and 1 to {_MOST_USERS} people: --user ann, or --user '*'"
            )
        if not self.may:
            raise ConfigError(f"a key needs a right: --may {','.join(RIGHTS)}")

    def check(self, right: Right) -> None:
        """Raise `NotAllowed` if this key is not for something."""
        if right not in self.may:
            raise NotAllowed(f"key {self.id} is not for {right!r}, but for {', '.join(self.may)}")

    def reaches(self, owner: Scope) -> bool:
        """Return whether this key reaches an owner; pure."""
        return (
            self.agent in (ANY, owner.agent)
            and not {ANY, owner.user}.isdisjoint(self.users)
            and self.workspace in (ANY, owner.workspace)
        )

    def scope(self, defaults: Scope, asked: Scope | None = None) -> Scope:
        """Return whose memory a request is about, if this key reaches it; pure.

        Args:
            defaults: the owner that the settings name, for what the key leaves open.
            asked: the owner that the request names; a field that is "" is not named.

        Raises:
            NotAllowed: it names another owner than the key, or none where the key has several.
        """
        asked = asked or Scope(agent="", user="")
        return Scope(
            agent=self._choose("agent", (self.agent,), asked.agent, defaults.agent),
            user=self._choose("user", self.users, asked.user, defaults.user),
            workspace=self._choose(
                "workspace", (self.workspace,), asked.workspace, defaults.workspace
            ),
            platform=asked.platform or defaults.platform,
        )

    def _choose(self, what: str, allowed: Sequence[str], asked: str, default: str) -> str:
        if ANY in allowed:
            return asked or default
        if not asked and len(allowed) == 1:
            return allowed[0]
        if asked in allowed:
            return asked
        if not asked:
            raise NotAllowed(f"key {self.id} has several people: name one as `user`")
        raise NotAllowed(f"key {self.id} does not reach {what} {asked[:100]!r}")


LOCAL: Final = ApiKey(id="local", agent=ANY, users=(ANY,), workspace=ANY, may=RIGHTS)
"""Stands for a caller on this machine while no key has been made."""


class NewKey(Result, frozen=True):
    """A key that was made.

    Attributes:
        token: what its owner sends; it is shown this once.
        id: its public name.
        agent: the agent whose memory it reaches.
        users: the people.
        may: what it is for.
        expires_at: when it ends, milliseconds; 0 for never.
    """

    token: str
    id: str
    agent: str
    users: tuple[str, ...]
    may: tuple[Right, ...]
    expires_at: Annotated[int, TIME] = 0


class RevokedKey(Result, frozen=True):
    """A key that is no longer valid, in any process."""

    revoked: str


class KeyRing:
    """The keys of a bus. Any thread may use it.

    While Redis is away the keys that were read last stay valid, so that events are still accepted.

    Args:
        settings: the settings of the bus.
        clock: time.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._redis = connect_redis(settings)
        self._name = Keys(settings.namespace).api_keys
        self._clock = clock
        self._last: dict[str, ApiKey] | None = None

    def create(self, key: ApiKey, make_secret: NewSecret) -> NewKey:
        """Store a key, and return it with its secret.

        Raises:
            LogUnavailable: Redis is away.
        """
        secret = make_secret()
        made = msgspec.structs.replace(key, digest=_digest(secret), created_at=self._clock.now_ms())
        body = msgspec.json.encode(made)
        ask_redis(lambda: self._redis.hset(self._name, made.id, body), self._name)
        token = f"{_PREFIX}_{made.id}_{secret}"
        return NewKey(token, made.id, made.agent, made.users, made.may, made.expires_at)

    def all(self) -> list[ApiKey]:
        """Return all keys without their digests, the oldest first.

        Raises:
            LogUnavailable: Redis is away.
        """
        bodies = ask_redis(lambda: self._redis.hgetall(self._name), self._name)
        self._last = decode_readable(bodies, prepared(ApiKey))
        shown = (msgspec.structs.replace(key, digest="") for key in self._last.values())
        return sorted(shown, key=lambda key: key.created_at)

    def revoke(self, key_id: str) -> RevokedKey:
        """End a key at once.

        Raises:
            ConfigError: there is no such key.
            LogUnavailable: Redis is away.
        """
        if not ask_redis(lambda: self._redis.hdel(self._name, key_id), self._name):
            raise ConfigError(f"there is no key {key_id[:100]!r}; memorybus key list shows all")
        return RevokedKey(key_id)

    def find(self, token: str) -> ApiKey:
        """Return the key of a token.

        Raises:
            NoAccess: there is no such key, or it has ended.
            LogUnavailable: Redis is away, and this process has read no keys yet.
        """
        prefix, _, rest = token.partition("_")
        key_id, _, secret = rest.partition("_")
        key = self._read(key_id) if prefix == _PREFIX and secret else None
        if key is None or not hmac.compare_digest(key.digest, _digest(secret)):
            raise NoAccess("this key is not valid; memorybus key create makes one")
        if key.expires_at and self._clock.now_ms() >= key.expires_at:
            raise NoAccess(f"key {key.id} has ended; memorybus key create makes another")
        return key

    def is_empty(self) -> bool:
        """Return whether no key was ever made, or all were revoked.

        Raises:
            LogUnavailable: Redis is away, and this process has read no keys yet.
        """
        try:
            return not ask_redis(lambda: self._redis.hlen(self._name), self._name)
        except LogUnavailable:
            if self._last is None:
                raise
            return not self._last

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def _read(self, key_id: str) -> ApiKey | None:
        try:
            body = ask_redis(lambda: self._redis.hget(self._name, key_id), self._name)
        except LogUnavailable:
            if self._last is None:
                raise
            return self._last.get(key_id)
        if self._last is None:
            self.all()  # what is valid while Redis is away
        key = decode_readable({key_id.encode(): body} if body else {}, prepared(ApiKey)).get(key_id)
        self._note(key_id, key)
        return key

    def _note(self, key_id: str, key: ApiKey | None) -> None:
        last = dict(self._last or {})
        last.pop(key_id, None)
        self._last = last | ({key_id: key} if key else {})


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass"))
