"""The doctor on dead letters."""

from memorybus.health.monitor import ProviderStatus
from memorybus.operations.doctor.dead_letters import dead_letters
from test_doctor import status


def test_dead_letters_are_named_with_what_to_run():
    """G6: what a provider lacks is told, with the command that lists it."""
    assert dead_letters(status(ProviderStatus("p", 5, 0, None, 0, 0, 16, 16))).ok
    check = dead_letters(status(ProviderStatus("mem0", 5, 0, None, 2, 7, 16, 16)))
    assert not check.ok
    assert "mem0 (7 events, 2 keys)" in check.found
    assert "memorybus dlq ls" in check.fix
