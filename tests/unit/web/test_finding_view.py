"""Findings lead to the view in which an operator acts."""

from typing import get_args

import pytest
from memorybus.health.finding import Code, Finding
from memorybus_console.web.finding_view import finding_view

OF_THE_SERVER = {
    "eviction_policy",
    "persistence",
    "read_only",
    "no_append_only_file",
    "memory",
    "disk",
    "redis_away",
    "foreign_entries",
}
"""What has to be done at Redis, of which no view has more."""


@pytest.mark.parametrize("code", get_args(Code))
def test_every_finding_but_the_servers_has_a_view(code: Code) -> None:
    """A finding has a link unless it is about Redis itself."""
    view = finding_view(Finding(code, "warning", "builtin", "", ""))
    assert (view is None) == (code in OF_THE_SERVER)


def test_a_subject_becomes_one_part_of_the_path() -> None:
    """The lane is cut off, and what has a meaning in addresses is quoted."""
    view = finding_view(Finding("lane_halted", "critical", "a/../b?c:p07", "", ""))
    assert view is not None
    assert view.path == "/providers/a%2F..%2Fb%3Fc#lanes"
