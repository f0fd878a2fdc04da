"""Redis processes that belong together: a cluster of shards, or a master and its sentinels."""

import atexit
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.crc import key_slot
from redis.exceptions import RedisError

from helpers.processes.waiting import wait_until
from helpers.redis.servers import RedisServer

SLOTS = 16_384
_FIRST_PORT, _LAST_PORT = 12_000, 22_000
_BUS = 10_000
"""A shard talks to the others on its port plus this: both below what the kernel gives out."""

MASTER = "mymaster"


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens on, nor on the ones for a cluster's talk.

    No other process of tests gets them as long as this one lives: until a server listens, or while
    it is dead between two starts, a port looks free to everybody.
    """
    found: list[int] = []
    with socket.socket() as probe:  # where to begin: chosen by the kernel, so runs do not collide
        probe.bind(("127.0.0.1", 0))
        start = _FIRST_PORT + probe.getsockname()[1] % (_LAST_PORT - _FIRST_PORT)
    for port in [*range(start, _LAST_PORT), *range(_FIRST_PORT, start)]:
        if _free(port) and _free(port + _BUS) and _reserved(port):
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no free ports")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _reserved(port: int) -> bool:
    """Take a port for this process: by the UDP port of its number, which nothing else here uses."""
    mark = socket.socket(type=socket.SOCK_DGRAM)
    try:
        mark.bind(("127.0.0.1", port))
    except OSError:
        mark.close()
        return False
    atexit.register(mark.close)
    return True


def with_replica(
    make_redis: Callable[..., RedisServer], **options: Any
) -> tuple[RedisServer, RedisServer]:
    """Return a master that listens on a port, and a replica that follows it."""
    (port,) = free_ports(1)
    at_once = {"repl_diskless_sync": "yes", "repl_diskless_sync_delay": 0}
    master = make_redis(port=port, **at_once, **options)
    replica = make_redis(**options)
    follow(replica, port)
    return master, replica


def follow(replica: RedisServer, port: int) -> None:
    """Let a server be the replica of another on this machine; wait until it follows."""
    replica.client().replicaof("127.0.0.1", port)
    wait_until(lambda: _follows(replica), "the replica follows", 20)


def _follows(replica: RedisServer) -> bool:
    return bool(replica.client().info("replication").get("master_link_status") == "up")


class RedisCluster:
    """Shards on this machine, each with the same number of replicas, and slots in even shares.

    Attributes:
        shards: the primaries the cluster began with.
        replicas: of each of them, in turn.
        url: names every shard.
    """

    def __init__(self, shards: int = 3, replicas: int = 0, binary: Path | None = None) -> None:
        ports = free_ports(shards * (1 + replicas))
        # Without replicas nothing has to fail over: a machine that stands still fails no shard.
        patience = 1_500 if replicas else 5_000
        servers = [_cluster_server(port, binary, patience) for port in ports]
        self.ports = ports
        self.shards = servers[:shards]
        self.replicas = servers[shards:]
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports[:shards])
        self.url = f"redis+cluster://{hosts}"

    @property
    def servers(self) -> list[RedisServer]:
        return [*self.shards, *self.replicas]

    def start(self) -> None:
        """Start all, give the slots out, and wait until every one says that all is well."""
        for server in self.servers:
            server.start()
        share = -(-SLOTS // len(self.shards))
        for i, shard in enumerate(self.shards):
            last = min(SLOTS, share * (i + 1)) - 1
            shard.client().execute_command("CLUSTER", "ADDSLOTS", *range(share * i, last + 1))
            shard.client().execute_command("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        first = self.servers[0].client()
        for port in self.ports[1:]:
            first.execute_command("CLUSTER", "MEET", "127.0.0.1", port)
        self.wait_whole()
        for i, replica in enumerate(self.replicas):
            name = self.shards[i % len(self.shards)].client().execute_command("CLUSTER", "MYID")
            wait_until(
                lambda replica=replica, name=name: _attached(replica, name.decode()),
                "a replica knows its shard",
            )
            wait_until(lambda replica=replica: _follows(replica), "a replica follows its shard")

    def wait_whole(self, timeout: float = 20) -> None:
        """Wait until every node that runs sees the whole cluster."""
        alive = [server for server in self.servers if server.alive]
        wait_until(
            lambda: all(_sees(server, len(self.servers)) for server in alive),
            "the cluster is whole",
            timeout,
        )

    def shard_of(self, key: str) -> RedisServer:
        """Return the shard that holds a key now."""
        ranges = self.servers[0].client(protocol=2).execute_command("CLUSTER", "SLOTS")
        slot = key_slot(key.encode())
        (port,) = [node[1] for first, last, node, *_ in ranges if first <= slot <= last]
        return self.servers[self.ports.index(port)]

    def says_down(self, shard: int) -> bool:
        """Whether a shard says that the cluster does not cover every slot."""
        told = self.shards[shard].client().execute_command("CLUSTER", "INFO")
        return b"cluster_state:fail" in told

    @contextmanager
    def moving(self, key: str) -> Iterator[None]:
        """Let a key's slot be on its way to another shard meanwhile; at the end it has arrived.

        The shard that takes a slot must know the newest epoch before: one that believes to have
        it already claims the slot with an old one, and two shards name each other for ever.
        """
        self._wait_agreed()
        slot = key_slot(key.encode())
        source = self.shard_of(key)
        target = self.shards[self.shards.index(source) - 1]
        names = {s: s.client().execute_command("CLUSTER", "MYID") for s in (source, target)}
        _set_slot(target, slot, "IMPORTING", names[source])
        _set_slot(source, slot, "MIGRATING", names[target])
        yield
        client = source.client()
        port = self.ports[self.shards.index(target)]
        while keys := client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            client.execute_command("MIGRATE", "127.0.0.1", port, "", 0, 5000, "KEYS", *keys)
        # The others would hear of it by gossip, and name the old owner until then.
        others = [shard for shard in self.shards if shard not in (target, source)]
        for shard in (target, source, *others):
            _set_slot(shard, slot, "NODE", names[target])
        self._wait_agreed()

    def _wait_agreed(self) -> None:
        """Wait until all shards tell the same slots and epochs of each shard."""
        wait_until(
            lambda: len({_slots_and_epochs(shard) for shard in self.shards}) == 1,
            "the shards agree about slots and epochs",
            20,
        )

    def remove(self) -> None:
        """Kill all, delete the data."""
        for server in self.servers:
            server.remove()


def _set_slot(server: RedisServer, slot: int, state: str, node: bytes) -> None:
    server.client().execute_command("CLUSTER", "SETSLOT", slot, state, node)


def _slots_and_epochs(server: RedisServer) -> frozenset[tuple[str, ...]]:
    """Return the name, epoch and slots of each node, as one of them knows them."""
    told = server.client().execute_command("CLUSTER", "NODES")
    nodes = [line.split() for line in told.decode().splitlines()]
    # In brackets: slots on their way, which a node tells of itself alone.
    return frozenset(
        (name, epoch, *(slots for slots in held if not slots.startswith("[")))
        for name, _, _, _, _, _, epoch, _, *held in nodes
    )


def _cluster_server(port: int, binary: Path | None, patience: int) -> RedisServer:
    return RedisServer(
        binary=binary,
        port=port,
        cluster_enabled="yes",
        cluster_node_timeout=patience,
        appendonly="yes",
        repl_diskless_sync="yes",
        repl_diskless_sync_delay=0,
    )


def _attached(replica: RedisServer, name: str) -> bool:
    """Attach a replica to a shard; once, as another time would begin the transfer anew."""
    try:
        replica.client().execute_command("CLUSTER", "REPLICATE", name)
    except RedisError:
        return False  # it does not know its shard yet
    return True


def _sees(server: RedisServer, nodes: int) -> bool:
    try:
        told = server.client().execute_command("CLUSTER", "INFO")
    except RedisError:
        return False
    text = told.decode() if isinstance(told, bytes) else str(told)
    return "cluster_state:ok" in text and f"cluster_known_nodes:{nodes}" in text


class Sentinels:
    """A master, its replica, and three sentinels that watch them.

    Attributes:
        servers: master first, as they began.
        url: names the sentinels.
    """

    def __init__(self, binary: Path | None = None, **options: str | int) -> None:
        ports = free_ports(5)
        self.servers = [_data_server(port, binary, options) for port in ports[:2]]
        self._ports = ports
        self._directory = Path(tempfile.mkdtemp(prefix="mb-sn-"))
        self.sentinels = [self._sentinel(port, binary) for port in ports[2:]]
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports[2:])
        self.url = f"redis+sentinel://{hosts}/{MASTER}"

    def _sentinel(self, port: int, binary: Path | None) -> RedisServer:
        """Return a sentinel: a server with another configuration, which it writes back."""
        config = self._directory / f"sentinel-{port}.conf"
        config.write_text(
            f"port {port}\n"
            f"sentinel monitor {MASTER} 127.0.0.1 {self._ports[0]} 2\n"
            f"sentinel down-after-milliseconds {MASTER} 800\n"
            f"sentinel failover-timeout {MASTER} 4000\n"
        )
        return RedisServer(binary=binary, sentinel=config)

    def start(self) -> None:
        """Start all; wait until the replica follows and the sentinels know each other."""
        for server in self.servers:
            server.start()
        follow(self.servers[1], self._ports[0])
        for sentinel in self.sentinels:
            sentinel.start()
        wait_until(
            lambda: all(_knows_all(sentinel) for sentinel in self.sentinels),
            "the sentinels know each other and the replica",
            20,
        )

    def master_port(self) -> int:
        client = self.sentinels[0].client()
        return int(client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)[1])

    def master(self) -> RedisServer:
        """Return the server that the sentinels call the master."""
        return self.servers[self._ports.index(self.master_port())]

    def fail_over(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Kill the master, do something while there is none, and wait until the other is one.

        Sentinels that were held up for two seconds trust their clocks again after thirty.
        """
        old, port = self.master(), self.master_port()
        old.kill()
        meanwhile()
        wait_until(lambda: self.master_port() != port, "another master is named", 90)
        wait_until(
            lambda: self.master().client().info("replication")["role"] == "master",
            "it knows that it is the master",
            20,
        )

    def remove(self) -> None:
        """Kill all, delete the data."""
        for server in [*self.sentinels, *self.servers]:
            server.remove()
        shutil.rmtree(self._directory, ignore_errors=True)


def _data_server(port: int, binary: Path | None, options: "dict[str, str | int]") -> RedisServer:
    return RedisServer(
        binary=binary,
        **{
            "port": port,
            "appendonly": "yes",
            "repl_diskless_sync": "yes",
            "repl_diskless_sync_delay": 0,
            **options,
        },
    )


def _knows_all(sentinel: RedisServer) -> bool:
    told = sentinel.client(protocol=2).execute_command("SENTINEL", "MASTER", MASTER)
    facts = dict(zip(told[::2], told[1::2], strict=True))
    return (facts[b"num-other-sentinels"], facts[b"num-slaves"]) == (b"2", b"1")


@contextmanager
def running(group: RedisCluster | Sentinels) -> Iterator[None]:
    """Run a group of servers; in the end nothing is left of it."""
    try:
        group.start()
        yield
    finally:
        group.remove()


def lengths(servers: Sequence[RedisServer], pattern: str) -> list[int]:
    """Count the entries of the streams that each server holds itself, by a pattern of keys."""
    found = []
    for server in servers:
        client: redis.Redis = server.client()
        found.append(sum(client.xlen(key) for key in client.scan_iter(pattern)))
    return found
