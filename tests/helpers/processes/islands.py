"""Network namespaces that can be cut off: a host of its own for some processes of a test."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator

import pytest


class Island:
    """A network namespace, joined to this one by a pair of devices.

    Attributes:
        shore: the address at this side, where a server may listen.
        within: the words before a command of `helpers.processes.processes.Spawn` that run it
        inside.
    """

    def __init__(self, number: int) -> None:
        """Make it.

        Raises:
            OSError, subprocess.CalledProcessError: that is not allowed here.
        """
        self._name = f"mb{uuid.uuid4().hex[:8]}"
        self._outer, self._inner = f"{self._name}o", f"{self._name}i"
        self.shore = f"198.18.{number}.1"  # a block for tests of networks (RFC 2544)
        self.within = ("-m", "helpers.processes.islands", self._name)
        _ip("netns", "add", self._name)
        try:
            self._join(f"198.18.{number}.2")
        except BaseException:
            self.remove()
            raise

    def _join(self, inside: str) -> None:
        _ip("link", "add", self._outer, "type", "veth", "peer", self._inner, "netns", self._name)
        _ip("address", "add", f"{self.shore}/30", "dev", self._outer)
        _ip("link", "set", self._outer, "up")
        _ip("-n", self._name, "address", "add", f"{inside}/30", "dev", self._inner)
        _ip("-n", self._name, "link", "set", self._inner, "up")
        _ip("-n", self._name, "link", "set", "lo", "up")

    def cut(self) -> None:
        """Lose every packet from now on; connections stay open and hear nothing."""
        _ip("link", "set", self._outer, "down")

    def heal(self) -> None:
        """Let packets through again."""
        _ip("link", "set", self._outer, "up")

    def remove(self) -> None:
        """Take it away; the devices go with it."""
        _ip("netns", "delete", self._name)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=10)


def _free_number() -> int:
    """Return a number whose addresses nobody has, such as another run; runs begin elsewhere."""
    told = subprocess.run(
        ["ip", "-o", "-4", "address"], check=True, capture_output=True, text=True, timeout=10
    ).stdout
    numbers = ((os.getpid() + step) % 250 for step in range(250))
    return next(number for number in numbers if f" 198.18.{number}." not in told)


@pytest.fixture
def make_island() -> Iterator[Callable[[], Island]]:
    """Make islands: ``make_island()``; skipped where network namespaces are not allowed."""
    islands: list[Island] = []

    def make() -> Island:
        try:
            island = Island(_free_number())
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"network namespaces (iproute2, root) cannot be made here: {error}")
        islands.append(island)
        return island

    yield make
    for island in islands:
        island.remove()


def main() -> None:
    """Become this Python with the words after the first, in the namespace that it names."""
    name, *words = sys.argv[1:]
    os.execvp("ip", ["ip", "netns", "exec", name, sys.executable, *words])


if __name__ == "__main__":
    main()
