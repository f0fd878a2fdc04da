"""The exit codes of the workers' processes."""

from typing import Final

FAILED: Final = 1
MISCONFIGURED: Final = 2
"""Another start would fail in the same way, so a supervisor ends."""
