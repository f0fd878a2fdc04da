"""A partition that cannot be sealed, and the command that mends it."""

import json
from typing import Any

import pytest
from memorybus.redis.keys import lane_name
from memorybus_console.cli import main
from memorybus_workers.archiving.archiver import run_once

from helpers.archive.sealed_log import SealedLog


def refused(log: SealedLog) -> str:
    """Return what keeps the partition from being sealed; nothing is."""
    done = run_once(log.settings)
    assert done.events == 0
    return done.errors.get(lane_name(log.PARTITION), "")


def repaired(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run the repair."""
    capsys.readouterr()
    assert main(["archive", "repair", "--execute", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found
