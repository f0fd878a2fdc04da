"""Names that become paths: whoever can write to Redis must not choose a path by them.

One rule holds for the instances that the settings name and for those that Redis names.
"""

import re
from typing import Annotated

import msgspec

from memorybus.errors import ConfigError, ForeignKey

_RULE = r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}"
_NAME = re.compile(_RULE)
_LOG = re.compile(r"[A-Za-z0-9-]{1,64}")

InstanceName = Annotated[str, msgspec.Meta(pattern=rf"\A{_RULE}\Z")]
"""An instance's name in what is read from Redis: an entry with another text is none of ours."""

InstanceOrNone = Annotated[str, msgspec.Meta(pattern=rf"\A(?:{_RULE})?\Z")]
"""The same, or "" for none."""


def check_name(name: str) -> str:
    """Return a name that may be an instance's.

    Raises:
        ConfigError: it may not.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name[:100]!r}: letters, digits, and - _ . @ (not first) make an instance's name"
        )
    return name


def log_id_of(body: bytes, key: str) -> str:
    """Return a log's id as its birth certificate has it: a folder of the archive is called so.

    Raises:
        ForeignKey: it is none.
    """
    found = body.decode("ascii", "replace")
    if not _LOG.fullmatch(found):
        raise ForeignKey(
            f"{key}: `log` is {found[:40]!r}, which memorybus did not write; restore the id that "
            f"the archive's folder is called by, or set another `namespace`"
        )
    return found
