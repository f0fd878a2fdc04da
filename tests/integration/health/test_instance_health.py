"""How a backend is: the instance that serves says why it could not."""

from helpers.stories.scenario import recorded, worker
from memorybus.clock import SYSTEM
from memorybus_console.operations.doctor.instances import check_health


def test_the_doctor_hears_what_ails_a_backend(redis_url, redis_client, make_settings, spawn, flag):
    """A provider that can be asked is asked where its recalls are, and its words are shown."""
    settings = make_settings(url=redis_url, recall_timeout=20.0, **recorded("Ill", ill=str(flag)))
    worker(spawn, settings, jobs=1)
    ill = check_health(settings, SYSTEM)
    assert (ill.ok, ill.found) == (False, "rec: the disk is nearly full")
    flag.unlink()
    assert check_health(settings, SYSTEM).ok


def test_who_cannot_be_asked_is_not(redis_client, make_settings, spawn):
    """A provider without `health`, or that no worker can ask, fails no check-up."""
    settings = make_settings(**recorded("Keyed"))
    worker(spawn, settings)
    assert check_health(settings, SYSTEM).ok
