"""What an ingest does not publish."""

import msgspec


class RefusedInput(msgspec.Struct, frozen=True):
    """Something that was not published, and why."""

    what: str
    why: str
