"""Keeps the map of slots of a Redis Cluster, and a client for each of its nodes."""

import threading
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from redis import Redis
from redis.crc import key_slot
from redis.exceptions import AuthenticationError, RedisError
from redis.exceptions import ConnectionError as Unreachable
from redis.utils import str_if_bytes


class SlotMap(msgspec.Struct, frozen=True):
    """Says which node owns which slots, as ranges in order."""

    starts: tuple[int, ...]  # the first slot of each range
    ends: tuple[int, ...]  # the last slot of each range
    owners: tuple[str, ...]  # the primary of each range, as ``host:port``
    replicated: frozenset[str]  # the primaries that have replicas which have not failed
    ids: Mapping[str, str]  # the ids of the primaries, by their addresses

    def owner(self, slot: int) -> str | None:
        i = bisect_right(self.starts, slot) - 1
        return self.owners[i] if i >= 0 and slot <= self.ends[i] else None


def read_slots(reply: Sequence[Any], asked: str) -> SlotMap:
    """Return the map in a reply to ``CLUSTER SLOTS``; a nameless node gets the `asked` host."""
    ranges = sorted(reply, key=lambda entry: int(entry[0]))
    owners = tuple(_address(entry[2], asked) for entry in ranges)
    return SlotMap(
        starts=tuple(int(entry[0]) for entry in ranges),
        ends=tuple(int(entry[1]) for entry in ranges),
        owners=owners,
        replicated=frozenset(
            owner for owner, entry in zip(owners, ranges, strict=True) if len(entry) > 3
        ),
        ids={owner: str_if_bytes(entry[2][2]) for owner, entry in zip(owners, ranges, strict=True)},
    )


def _address(node: Sequence[Any], asked: str) -> str:
    host = node[0].decode() if isinstance(node[0], bytes) else node[0]
    return f"{host if host and host != '?' else asked}:{int(node[1])}"


def slot_of(key: str | bytes) -> int:
    """Return the slot of a key; keys with one hash tag share theirs."""
    return key_slot(key.encode() if isinstance(key, str) else key)


class Nodes:
    """The nodes of one cluster, and the newest map of it. Several threads may use it."""

    def __init__(
        self, seeds: Sequence[tuple[str, int]], options: Mapping[str, Any], *, single: bool
    ) -> None:
        self._seeds = [f"{host}:{port}" for host, port in seeds]
        self._options = options
        self._single = single
        self._clients: dict[str, Redis] = {}
        self._map: SlotMap | None = None
        self._failed = ""
        self._lock = threading.RLock()

    def owner(self, key: str | bytes | None) -> str:
        """Return the address of the node that holds a key; for None, that of slot 0."""
        slot = 0 if key is None else slot_of(key)
        address = (self._map or self.refresh()).owner(slot)
        if address is None:
            self.mark_failed("")
            raise Unreachable(f"no shard of the cluster serves slot {slot}")
        return address

    def is_replicated(self, address: str) -> bool:
        """Return whether a primary has replicas, also such as have failed.

        A failed replica is not in the map. It may come back and take the primary's place, without
        what it missed.
        """
        slots = self._map or self.refresh()
        if address in slots.replicated or address not in slots.ids:
            return address in slots.replicated
        node: Any = self.client_at(address)
        return bool(node.execute_command("CLUSTER", "REPLICAS", slots.ids[address]))

    def client_at(self, address: str) -> Redis:
        with self._lock:
            if address not in self._clients:
                try:
                    self._clients[address] = self._client(address)
                except RedisError:
                    self.mark_failed(address)
                    raise
            return self._clients[address]

    def _client(self, address: str) -> Redis:
        host, _, port = address.rpartition(":")
        return Redis(
            host=host,
            port=int(port),
            single_connection_client=self._single,
            **self._options,
        )

    def clients(self) -> list[Any]:
        """Return the clients of all primaries, and of nodes to which a key was redirected."""
        with self._lock:
            owners = (self._map or self.refresh()).owners
            return [self.client_at(address) for address in {*owners, *self._clients}]

    def redirected_address(self, host: str, port: int, asked: str) -> str:
        """Return the address in a redirection; without a host, that of the node that was asked."""
        return f"{host or asked.rpartition(':')[0]}:{port}"

    def mark_failed(self, address: str) -> None:
        """Read the map again before the next command, and ask `address` last, since it failed."""
        with self._lock:
            self._map, self._failed = None, address

    def refresh(self, first: str = "") -> SlotMap:
        """Read the map again from the first node that answers."""
        with self._lock:
            errors, kind = [], Unreachable
            for address in self._in_order_of_trust(first):
                try:
                    node: Any = self.client_at(address)
                    reply = node.execute_command("CLUSTER", "SLOTS")
                except (RedisError, OSError) as error:
                    errors.append(f"{address}: {error}")
                    kind = AuthenticationError if isinstance(error, AuthenticationError) else kind
                    continue
                self._map = read_slots(reply, address.rpartition(":")[0])
                self._close_unused(self._map)
                return self._map
            raise kind("no node of the cluster answers: " + "; ".join(errors))

    def _in_order_of_trust(self, first: str) -> Iterator[str]:
        addresses = dict.fromkeys([*([first] if first else []), *self._clients, *self._seeds])
        yield from sorted(addresses, key=lambda address: address == self._failed)

    def _close_unused(self, slots: SlotMap) -> None:
        for address in self._clients.keys() - {*slots.owners}:
            self._clients.pop(address).close()

    def close(self) -> None:
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()
