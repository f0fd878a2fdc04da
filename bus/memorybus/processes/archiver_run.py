"""What one run of an archiver did, as its process tells a command."""

import msgspec


class ArchiverRun(msgspec.Struct, frozen=True):
    """What one run did.

    Attributes:
        place: where the archive is; "" if the log does not exist, so that it has none.
        events: how many were sealed.
        elsewhere: whether it lies on another host, so that nothing could be done here.
        errors: what kept partitions from being sealed, by name.
        busy: the partitions that were left to another archiver, which is at work on them, or died
            there a moment ago (its lease ends by itself).
    """

    place: str
    events: int
    elsewhere: bool
    errors: dict[str, str]
    busy: tuple[str, ...] = ()

    @property
    def hindered(self) -> bool:
        """Whether something kept this run from sealing what is due."""
        return self.elsewhere or bool(self.errors)

    @property
    def idle(self) -> bool:
        """Whether nothing was due."""
        return not (self.events or self.hindered or self.busy)
