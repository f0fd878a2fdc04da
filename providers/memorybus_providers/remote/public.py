"""Connects to public addresses only: an address in a setting must not reach a private network.

The name is looked up before anything is sent, and the address of the connection itself is checked
as well, since a name may have another address a moment later.
"""

import ipaddress
import socket
from typing import Any

import urllib3
from memorybus.errors import Unavailable
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the public internet.

    IPv6 addresses that stand for an IPv4 address are as public as that one, or not at all.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            ip = ip.ipv4_mapped
        elif ip.sixtofour or ip.teredo or ip in _NAT64:
            return False
    return ip.is_global and not ip.is_multicast


def _check(host: str, address: str) -> None:
    if not is_public(address):
        raise Unavailable(
            f"{host} has the private address {address}, and nothing was sent to it; if that is "
            "meant, set allow_private = true in the provider's table of the settings"
        )


class _PublicOnly(HTTPConnection):
    """A connection that is refused if its other end is not public."""

    def _new_conn(self) -> socket.socket:
        for *_, place in _addresses(self.host, self.port):
            _check(self.host, str(place[0]))
        connection = super()._new_conn()
        try:
            _check(self.host, str(connection.getpeername()[0]))
        except Unavailable:
            connection.close()
            raise
        return connection


def _addresses(host: str, port: int | None) -> list[Any]:
    try:
        return socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError:
        return []  # the connection fails for the same reason, and reports it


class _PublicOnlyTls(_PublicOnly, HTTPSConnection):
    """The same over TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _PublicOnly


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _PublicOnlyTls


def public_pools(**options: Any) -> urllib3.PoolManager:
    """Return a pool manager that connects to public addresses only.

    Its requests raise `Unavailable` for an address that is not public.
    """
    pools = urllib3.PoolManager(**options)
    pools.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
    return pools
