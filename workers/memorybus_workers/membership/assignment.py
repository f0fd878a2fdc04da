"""Decides which worker serves which lane: pure functions of live workers and present owners."""

import hashlib
from collections import Counter
from collections.abc import Mapping

Weights = Mapping[str, float]
"""Live workers that can serve a provider, by id, with their capacities."""


def quotas(lanes: int, weights: Weights, owned: Mapping[str, int], salt: str) -> dict[str, int]:
    """Return how many lanes each worker is to have: shares by weight, in whole lanes.

    The lanes that remain go to the largest fractions; among equal ones to the workers that own more
    now, so that fewer lanes move; then in an order that depends on `salt`.
    """
    total = sum(weights.values())
    exact = {worker: lanes * weight / total for worker, weight in weights.items()}
    share = {worker: int(quota) for worker, quota in exact.items()}
    left = lanes - sum(share.values())

    def claim(worker: str) -> tuple[float, int, bytes, str]:
        fraction = round(exact[worker] - share[worker], 9)
        has_more = owned.get(worker, 0) - share[worker]
        return (-fraction, -has_more, _order(salt, worker), worker)

    for worker in sorted(weights, key=claim)[:left]:
        share[worker] += 1
    return share


def assign(owners: Mapping[int, str | None], weights: Weights, salt: str = "") -> dict[int, str]:
    if not weights:
        return {}
    owned = Counter(owner for owner in owners.values() if owner and owner in weights)
    room = quotas(len(owners), weights, owned, salt)
    assigned: dict[int, str] = {}
    homeless: list[int] = []
    for partition in sorted(owners):
        owner = owners[partition]
        if owner is not None and room.get(owner, 0) > 0:
            assigned[partition] = owner
            room[owner] -= 1
        else:
            homeless.append(partition)
    for worker in sorted(room):
        for partition in homeless[: room[worker]]:
            assigned[partition] = worker
        del homeless[: room[worker]]
    return assigned


def assign_to_one(
    owners: Mapping[int, str | None], weights: Weights, salt: str = ""
) -> dict[int, str]:
    """Assign all lanes to one worker, for a store that takes one writer at a time."""
    if not weights:
        return {}
    owned = Counter(owner for owner in owners.values() if owner and owner in weights)

    def claim(worker: str) -> tuple[int, float, bytes, str]:
        return (-owned[worker], -weights[worker], _order(salt, worker), worker)

    return dict.fromkeys(sorted(owners), min(weights, key=claim))


def wanted_lanes(
    me: str,
    assigned: Mapping[int, str],
    owners: Mapping[int, str | None],
    deserted: set[int],
    reserved: set[int],
) -> frozenset[int]:
    """Return the lanes that worker `me` is to have now.

    These are the lanes assigned to it, and those that have been free for too long: serving comes
    before balance. It gives up others that it owns as soon as another worker can take them.
    """
    mine = {partition for partition, worker in assigned.items() if worker == me}
    if not assigned:
        mine = {partition for partition, owner in owners.items() if owner == me}
    return frozenset((mine | deserted) - reserved)


def _order(salt: str, worker: str) -> bytes:
    return hashlib.blake2b(f"{salt}:{worker}".encode(), digest_size=8).digest()
