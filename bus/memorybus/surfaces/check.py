"""What one check of ``memorybus doctor`` found."""

import msgspec


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What one check found.

    Attributes:
        name: what was looked at.
        ok: whether it is as it should be.
        found: what was seen.
        fix: what to do if not; with `ok`, what to do before long: a warning.
    """

    name: str
    ok: bool
    found: str
    fix: str = ""
