"""How many calls an instance may make, as its table says."""

import pytest
from memorybus.config.settings import CallLimits, Settings
from memorybus.errors import ConfigError


def test_limits_are_no_options_of_the_provider():
    """Workers read them; the provider's own options are without."""
    table = {"kind": "builtin", "memory_limit": 5, "calls_per_second": 2, "daily_budget": 9}
    settings = Settings(provider={"notes": table})
    assert settings.provider_options("notes") == {"memory_limit": 5}
    assert settings.provider_limits("notes") == CallLimits(calls_per_second=2.0, daily_budget=9)
    assert settings.provider_limits("other") == CallLimits()


@pytest.mark.parametrize(
    "limits", [{"calls_per_second": "2"}, {"calls_per_second": -1}, {"daily_budget": 1.5}]
)
def test_a_wrong_limit_is_refused(limits):
    """A limit that is no number, or negative, is named with its provider."""
    with pytest.raises(ConfigError, match="notes"):
        Settings(provider={"notes": limits}).provider_limits("notes")
