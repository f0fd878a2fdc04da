"""Which end of one worker ends all of them: pure, by tables."""

import pytest
from memorybus.errors import NEEDS_A_PERSON, ConfigError, LogUnavailable
from memorybus_workers.processes.process import MISCONFIGURED
from memorybus_workers.processes.supervised_worker import fatal_error


@pytest.mark.parametrize("kind", NEEDS_A_PERSON)
def test_what_would_end_every_worker_ends_all(kind):
    """A failure that a person has to mend is not tried again and again."""
    error = kind("so")
    assert fatal_error(1, error) is error


@pytest.mark.parametrize(
    ("code", "error"), [(0, None), (1, None), (-9, None), (1, LogUnavailable("so"))]
)
def test_what_may_pass_is_tried_again(code, error):
    """G9: a worker that was killed, or failed of what may pass, gets a successor."""
    assert fatal_error(code, error) is None


def test_wrong_usage_ends_all():
    """A worker that ends with 2 without a word would do so again."""
    assert isinstance(fatal_error(MISCONFIGURED, None), ConfigError)
