"""A Redis Cluster behind the interface of a client of one server (G1, G5).

It has the same commands and errors. A command goes to the shard of its key, and a pipeline to all
shards at once, so that it stays one round trip. MOVED and ASK are followed; after a failure the map
of slots is read again before the next command. No other command is sent twice. redis-py's cluster
client is not used, for the reasons in docs/decisions/servers.md.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, Self, TypeAlias

import msgspec
from redis import ConnectionPool, Redis
from redis.client import Pipeline
from redis.exceptions import AskError, ClusterDownError, MovedError, RedisError
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import TimeoutError as TooLate
from redis.sentinel import SentinelConnectionPool

from memorybus.redis.cluster_nodes import Nodes, slot_of

Command: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""A command's words, and redis-py's options for its reply."""

_MAX_REDIRECTIONS = 8
_KEY_AT = {"EVALSHA": 3, "EVAL": 3, "XGROUP": 2, "XINFO": 2, "MEMORY": 2, "OBJECT": 2}
"""The place of the key among a command's words, if it does not follow the name."""

_KEYLESS_COMMANDS = frozenset(("CLIENT", "CLUSTER", "CONFIG", "INFO", "PING", "TIME"))
_SHARD_COMMANDS = frozenset(
    ("DBSIZE", "FLUSHALL", "FLUSHDB", "KEYS", "SCAN", "WAIT", "WAITAOF", "WATCH", "XREAD")
)
"""Commands that one shard answers for its own part only: the caller must choose the shard
(`group_by_shard`)."""

_ON_ALL_SHARDS = "SCRIPT LOAD"


class Shard(msgspec.Struct, frozen=True):
    """One server, and the keys of a group that it holds."""

    redis: Redis  # its client; for a single server, the caller's own
    keys: tuple[str, ...]  # its keys, in the order in which the caller gave them
    # asks whether another server, which may lack its last writes, may replace it
    fails_over: Callable[[], bool]


def group_by_shard(redis: Redis, keys: Iterable[str]) -> list[Shard]:
    if isinstance(redis, Cluster):
        return redis.shards(keys)
    fails_over = isinstance(redis.connection_pool, SentinelConnectionPool)
    return [Shard(redis, tuple(keys), lambda: fails_over)]


def group_by_slot(redis: Redis, keys: Iterable[str], most: int) -> list[list[str]]:
    """Group keys so that one script may use a group: by slot; on a single server, all together."""
    groups: dict[int, list[str]] = {}
    clustered = isinstance(redis, Cluster)
    for key in keys:
        groups.setdefault(slot_of(key) if clustered else 0, []).append(key)
    return [group[at : at + most] for group in groups.values() for at in range(0, len(group), most)]


class Cluster(Redis):
    """Acts as a `Redis`, for several threads; without a key it asks the shard of slot 0."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        super().__init__(
            connection_pool=ConnectionPool()
        )  # the base class wants one; it is never connected

    def shards(self, keys: Iterable[str]) -> list[Shard]:
        """Group keys by shard; the map is read again first, because the caller uses the shards."""
        self._nodes.refresh()
        groups: dict[str, list[str]] = {}
        for key in keys:
            groups.setdefault(self._nodes.owner(key), []).append(key)
        return [
            Shard(
                self._nodes.client_at(address),
                tuple(held),
                partial(self._nodes.is_replicated, address),
            )
            for address, held in groups.items()
        ]

    def client_for_key(self, key: str) -> Redis:
        return self._nodes.client_at(self._nodes.owner(key))

    def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] == _ON_ALL_SHARDS:
            replies = [node.execute_command(*args, **options) for node in self._nodes.clients()]
            return replies[-1]
        address = self._nodes.owner(key_of(args))
        try:
            node: Any = self._nodes.client_at(address)
            return node.execute_command(*args, **options)
        except AskError as redirection:
            return self._follow_redirection((args, options), address, redirection)
        except (Unreachable, TooLate, ClusterDownError):
            self._nodes.mark_failed(address)
            raise

    def _follow_redirection(self, command: Command, asked: str, redirection: AskError) -> Any:
        """Run a command whose key is moving, or has moved, to another shard."""
        for _ in range(_MAX_REDIRECTIONS):
            address = self._nodes.redirected_address(redirection.host, redirection.port, asked)
            moved = isinstance(redirection, MovedError)
            if moved:
                self._nodes.refresh(address)
            node: Any = self._nodes.client_at(address)
            with node.pipeline(transaction=False) as pipe:
                if not moved:
                    pipe.execute_command("ASKING")
                pipe.execute_command(*command[0], **command[1])
                reply = pipe.execute(raise_on_error=False)[-1]
            if not isinstance(reply, AskError):
                break
            asked, redirection = address, reply
        if isinstance(reply, Exception):
            raise reply
        return reply

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Pipeline:
        return _Pipeline(self, transaction)

    def send(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands in one round trip to all their shards; a refused one returns its error."""
        replies, asked = self._send_round(commands)
        for i, reply in enumerate(replies):
            if isinstance(reply, AskError):  # in order, so a key's commands stay in order
                try:
                    replies[i] = self._follow_redirection(commands[i], asked[i], reply)
                except RedisError as error:
                    replies[i] = error
            elif isinstance(reply, ClusterDownError):
                self._nodes.mark_failed(asked[i])
        return replies

    def _send_round(self, commands: Sequence[Command]) -> tuple[list[Any], list[str]]:
        asked = [self._nodes.owner(key_of(args)) for args, _ in commands]
        replies: list[Any] = [None] * len(commands)
        with ExitStack() as stack:
            requests = []
            for address in dict.fromkeys(asked):
                mine = [i for i, at in enumerate(asked) if at == address]
                requests.append(
                    _ShardRequest(self._nodes, address, [commands[i] for i in mine], mine)
                )
            for request in requests:
                stack.enter_context(request)
                request.write()
            for request in requests:
                for i, reply in zip(request.places, request.read(), strict=True):
                    replies[i] = reply
        return replies, asked

    def transaction_on_one_shard(self, commands: Sequence[Command], raising: bool) -> list[Any]:
        address = self._nodes.owner(key_of(commands[0][0]))
        with self._nodes.client_at(address).pipeline() as pipe:
            pipe.command_stack = list(commands)
            try:
                return list(pipe.execute(raising))
            except (Unreachable, TooLate, AskError, ClusterDownError) as error:
                self._nodes.mark_failed(address)
                if isinstance(error, MovedError):  # other nodes may not know of the move yet
                    self._nodes.refresh(
                        self._nodes.redirected_address(error.host, error.port, address)
                    )
                raise

    def set_response_callback(self, command: str, callback: Any) -> NoReturn:
        """Refuse: each shard's client reads its own replies."""
        raise NotImplementedError(f"{command}: replies of a cluster are read as redis-py does")

    def close(self) -> None:
        self._nodes.close()


class _Pipeline(Pipeline):
    """Collects commands for `Cluster.send`."""

    def __init__(self, cluster: Cluster, transaction: bool) -> None:
        super().__init__(cluster.connection_pool, cluster.response_callbacks, transaction, None)
        self._cluster = cluster
        self._atomic = transaction

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        stack, self.command_stack = self.command_stack, []
        if not stack:
            return []
        if self._atomic:
            return self._cluster.transaction_on_one_shard(stack, raise_on_error)
        replies = self._cluster.send(stack)
        if raise_on_error:
            raising: Any = self.raise_first_error
            raising(stack, replies)
        return replies


class _ShardRequest:
    """One shard's part of a round trip. A connection with unread replies is closed, not reused."""

    def __init__(
        self, nodes: Nodes, address: str, commands: Sequence[Command], places: Sequence[int]
    ) -> None:
        self.places = places
        self._nodes = nodes
        self._address = address
        self._commands = commands
        self._redis: Any = nodes.client_at(address)
        self._connection: Any = None
        self._awaits_replies = False

    def __enter__(self) -> Self:
        return self

    def write(self) -> None:
        try:
            single = self._redis.connection
            self._connection = single or self._redis.connection_pool.get_connection()
            self._awaits_replies = True
            words = [args for args, _ in self._commands]
            self._connection.send_packed_command(self._connection.pack_commands(words))
        except (Unreachable, TooLate):
            self._nodes.mark_failed(self._address)
            raise

    def read(self) -> list[Any]:
        try:
            replies = [self._reply(args[0], options) for args, options in self._commands]
        except (Unreachable, TooLate):
            self._nodes.mark_failed(self._address)
            raise
        self._awaits_replies = False
        return replies

    def _reply(self, name: str, options: dict[str, Any]) -> Any:
        try:
            return self._redis.parse_response(self._connection, name, **options)
        except (Unreachable, TooLate):
            raise
        except RedisError as refusal:
            return refusal

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._connection is None:
            return
        if self._awaits_replies:
            self._connection.disconnect()
        if self._redis.connection is None:
            self._redis.connection_pool.release(self._connection)


def key_of(args: Sequence[Any]) -> str | bytes | None:
    """Return the key that decides where a command goes; None if it has none."""
    name = args[0].decode() if isinstance(args[0], bytes) else str(args[0])
    words = [*name.upper().split(), *args[1:]]
    if words[0] in _KEYLESS_COMMANDS:
        return None
    at = _KEY_AT.get(words[0], 1)
    if words[0] in _SHARD_COMMANDS or len(words) <= at:
        raise RedisError(
            f"{name}: has no key to find its shard by; send it to one (group_by_shard)"
        )
    key: str | bytes = words[at]
    return key
