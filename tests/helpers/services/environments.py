"""Real memory services, each in a Python environment of its own under ``.servers``.

``make backends`` fetches them. One that cannot be had here is named with the reason, and the tests
that want it are skipped with that.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from helpers.services.fetched import FETCHED, fetch, installed, skip_without

PACKAGES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "hindsight-1.1.0": ("hindsight-api-slim==1.1.0",),
        "mem0-2.2.1": ("mem0ai==2.2.1", "psycopg-pool>=3.2.8"),
        "phoenix-20.26.1": ("arize-phoenix==20.26.1",),
    }
)
"""By the environment's name, what is in it: Hindsight's server, Mem0's library, and Phoenix, which
keeps and shows traces that it gets by OTLP."""


def is_here(name: str) -> bool:
    """Say whether a service was fetched."""
    return (FETCHED / name / "done").exists()


def environment(name: str) -> Path:
    """Return where a service's environment is; skip the test if it is not here."""
    if not is_here(name):
        skip_without(name, "make backends")
    return FETCHED / name


def packages_of(name: str) -> Path:
    """Return where an environment's packages are; skip the test if it is not here."""
    (found,) = environment(name).glob("lib/python*/site-packages")
    return found


def _release(name: str) -> str:
    if not is_here(name):
        installed(FETCHED / name, *PACKAGES[name])
        (FETCHED / name / "done").touch()
    return " ".join(PACKAGES[name])


if __name__ == "__main__":
    for service in PACKAGES:
        fetch(service, partial(_release, service))
