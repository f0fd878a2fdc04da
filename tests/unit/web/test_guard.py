"""Names by which the page is reached."""

import pytest
from memorybus.health.metrics_server import is_loopback
from memorybus_console.web.guard import is_own_host
from memorybus_console.web.signing import own_path


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1:8686", True),
        ("localhost:8686", True),
        ("LOCALHOST", True),
        ("[::1]:8686", True),
        ("10.0.0.7", True),
        ("bus.example:8686", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example:8686", False),
        ("", False),
    ],
)
def test_a_strangers_name_is_refused(host, ours):
    """Addresses and names of the settings are ours; any other name may lead here by rebinding."""
    assert is_own_host(host, {"localhost", "bus.example"}) is ours


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("bus", False)],
)
def test_loopback_is_what_only_this_machine_reaches(host, alone):
    """An address that others may reach is known as one."""
    assert is_loopback(host) is alone


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/providers/a?b=c", "/providers/a?b=c"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/a\r\nx: y", "/"),
    ],
)
def test_signing_in_leads_nowhere_else(path, own):
    """What follows a sign-in is a path of the page."""
    assert own_path(path) == own
