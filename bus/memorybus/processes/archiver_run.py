"""The report of one run of an archiver, which its process sends to a command."""

import msgspec


class ArchiverRun(msgspec.Struct, frozen=True):
    """The results of one run."""

    place: str  # where the archive is; "" if there is no log, and so no archive
    events: int  # how many events were sealed
    elsewhere: bool  # whether the archive is on another host, so that nothing could be done here
    errors: dict[str, str]  # by name of the partition, the error that kept it from being sealed
    # the partitions that were left to another archiver, which works on them, or died a moment ago
    # (then its lease ends by itself)
    busy: tuple[str, ...] = ()

    @property
    def hindered(self) -> bool:
        """Whether something kept this run from sealing the events that are due."""
        return self.elsewhere or bool(self.errors)

    @property
    def idle(self) -> bool:
        """Whether nothing was due."""
        return not (self.events or self.hindered or self.busy)
