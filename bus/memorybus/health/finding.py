"""What one check of ``memorybus doctor`` found."""

import msgspec

from memorybus.text.redact import masked


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

    def __post_init__(self) -> None:
        """Mask credentials: what was seen may be an error of whatever was asked."""
        msgspec.structs.force_setattr(self, "found", masked(self.found))
