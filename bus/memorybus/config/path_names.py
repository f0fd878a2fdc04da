"""Checks names that become paths, so that nobody who can write to Redis can choose a path."""

import re
from typing import Annotated

import msgspec

from memorybus.errors import ConfigError, ForeignKey

_RULE = r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}"
_NAME = re.compile(_RULE)
_LOG = re.compile(r"[A-Za-z0-9-]{1,64}")
InstanceName = Annotated[str, msgspec.Meta(pattern=rf"\A{_RULE}\Z")]
"""An instance's name as it is read from Redis: an entry with another form is not ours."""

InstanceOrNone = Annotated[str, msgspec.Meta(pattern=rf"\A(?:{_RULE})?\Z")]
"""An instance's name, or "" for none."""


def check_name(name: str) -> str:
    """Return a name if an instance may have it. `ConfigError`: it may not."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name[:100]!r}: letters, digits, and - _ . @ (not first) make an instance's name"
        )
    return name


def log_id_of(body: bytes, key: str) -> str:
    """Return a log's id from its record (`<ns>:meta`): a folder of the archive has that name."""
    log_id = body.decode("ascii", "replace")
    if not _LOG.fullmatch(log_id):
        raise ForeignKey(
            f"{key}: `log` is {log_id[:40]!r}, which memorybus did not write; restore the id that "
            f"the archive's folder is called by, or set another `namespace`"
        )
    return log_id
