"""The faults of Redis and Valkey that matter here, and the releases that lack them: pure functions.

The bus runs Lua scripts and reads RESP from its server, so faults of these two are listed.
"""

from collections.abc import Iterator, Mapping

import msgspec

from memorybus.redis.facts import Server

Release = tuple[int, ...]


class Fault(msgspec.Struct, frozen=True):
    """A published fault.

    Attributes:
        text: what can happen, and its number.
        source: where its publishers describe it.
        mended: of each product that has it, the first release of each series without it.
    """

    text: str
    source: str
    mended: Mapping[str, tuple[Release, ...]]


KNOWN_FAULTS = (
    Fault(
        "a Lua script can run code in the server (CVE-2025-49844)",
        "https://github.com/redis/redis/security/advisories/GHSA-4789-qfc9-5f9q",
        {
            "Redis": ((6, 2, 20), (7, 2, 11), (7, 4, 6), (8, 0, 4), (8, 2, 2)),
            "Valkey": ((7, 2, 11), (8, 0, 6), (8, 1, 4)),
        },
    ),
    Fault(
        "the error of a Lua script can inject RESP replies (CVE-2025-67733)",
        "https://github.com/valkey-io/valkey/releases/tag/9.0.3",
        {"Valkey": ((7, 2, 12), (8, 0, 7), (8, 1, 6), (9, 0, 3))},
    ),
    Fault(
        "a Lua script that runs during a full sync uses freed memory (CVE-2026-23631)",
        "https://github.com/valkey-io/valkey/releases/tag/9.0.4",
        {"Valkey": ((7, 2, 13), (8, 0, 8), (8, 1, 7), (9, 0, 4))},
    ),
)


def faults_of(server: Server) -> Iterator[Fault]:
    """Yield the known faults of a server."""
    for fault in KNOWN_FAULTS:
        if _has(server.release, fault.mended.get(server.product, ())):
            yield fault


def _has(release: Release, mended: tuple[Release, ...]) -> bool:
    """Return whether a release has a fault: series later than the last that is listed never had."""
    first = next((known for known in mended if known[:2] == release[:2]), max(mended, default=()))
    return release < first
