"""The doctor's look at providers whose calls fail."""

import msgspec
from memorybus.health.monitor import ProviderStatus
from memorybus.operations.doctor.serving import backends
from test_doctor import status


def test_a_failing_backend_is_named_with_what_it_says() -> None:
    """G6, G9: a backend that is down is seen, though nothing is parked for it."""
    well = ProviderStatus("p", 5, 0, None, 0, 0, 16, 16)
    assert backends(status(well)).ok
    ill = msgspec.structs.replace(well, name="mem0", failing="Transient: 500")
    check = backends(status(well, ill))
    assert not check.ok
    assert "mem0: Transient: 500" in check.found
