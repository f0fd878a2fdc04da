"""An instance is refused if it cannot obey what its table asks for."""

import pytest
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus_workers.hosting.instances import make_instance


@pytest.mark.parametrize("option", ["calls_per_second", "daily_budget", "concurrency"])
@pytest.mark.parametrize("kind", ["builtin", "holographic"])
def test_what_a_provider_cannot_obey_is_refused(tmp_path, kind, option):
    """Neither a limit nor a number of calls at once is accepted and then ignored."""
    table = {"kind": kind, option: 4}
    settings = Settings(data_dir=tmp_path, provider={"notes": table})
    with pytest.raises(ConfigError, match=option):
        make_instance(settings, "notes", SYSTEM)
