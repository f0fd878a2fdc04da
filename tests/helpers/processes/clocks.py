"""Hosts whose wall clock jumps: libfaketime under a process, told by a file.

``make servers`` fetches the library from Debian's packages.
"""

from pathlib import Path
from types import MappingProxyType

from helpers.services.debian_programs import DebianPrograms

FAKETIME = DebianPrograms(
    "faketime", ("faketime", "libfaketime"), MappingProxyType({"faketime": "usr/bin/faketime"})
)
_PLACES = (FAKETIME.home, Path("/usr/lib"), Path("/usr/lib64"), Path("/usr/local/lib"))
_LIBRARY = "libfaketimeMT.so.1"


class WrongClock:
    """The wall clock of the processes that run with `env`; time that only grows is left alone.

    Attributes:
        env: what to add to their environment.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._path = directory / f"clock-{name}"
        self.set(0)
        self.env = {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_CACHE_DURATION": "1",  # seconds until a process sees a change
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # else threads that wait for the GIL spin
        }

    def set(self, seconds: int) -> None:
        """Let the clock be wrong by so many seconds, from one reading to the next."""
        aside = self._path.with_suffix(".new")
        aside.write_text(f"{seconds:+d}\n")
        aside.rename(self._path)


def _library() -> Path:
    for place in _PLACES:
        for found in sorted(place.glob(f"**/{_LIBRARY}")):
            return found
    return FAKETIME.program("faketime").with_name(_LIBRARY)


if __name__ == "__main__":
    FAKETIME.fetch()
