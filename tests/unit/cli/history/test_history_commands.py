"""What the commands of history say: amounts, exceptions, names that nobody knows, progress."""

from types import SimpleNamespace
from typing import Any

import pytest
from memorybus.errors import ConfigError
from memorybus.testing import FakeClock
from memorybus_console.cli.failures import LINE_INTERVAL, LineSchedule, note_on_interrupt
from memorybus_console.operations import stores
from memorybus_console.operations.copies.replay import time_text
from memorybus_console.operations.moments import moment_of, moment_text
from memorybus_console.views.output import Output


def test_progress_comes_seldom_and_at_the_end():
    """Off a terminal there is a line at once, one every few seconds, and the last."""
    clock = FakeClock()
    schedule = LineSchedule(clock)
    said = []
    for look in range(100):
        said.append(schedule.is_due(last=look == 99))
        clock.advance(0.2)
    assert said[0]
    assert said[-1]
    assert sum(said) == 1 + (100 * 0.2) // LINE_INTERVAL


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.0003, "less than a second"), (2.34, "2.3 seconds"), (65, "1 minute"), (9000, "2 hours")],
)
def test_a_short_time_is_not_nothing(seconds, said):
    """A plan never takes 0.0 s."""
    assert time_text(seconds) == said


@pytest.mark.parametrize("ends", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_command_says_what_is_so(ends, capsys):
    """Ctrl-C and SIGTERM say what was and was not done, and go on to end the command."""
    with pytest.raises(ends), note_on_interrupt(Output(json=False), "nothing was changed"):
        raise ends
    assert capsys.readouterr().err == "nothing was changed\n"


def desk(*names: str) -> Any:
    """Return the stores as far as names are looked up in them."""
    return SimpleNamespace(
        settings=SimpleNamespace(providers=names),
        roster=SimpleNamespace(providers=dict, instances=dict),
        instances=SimpleNamespace(all=dict),
    )


@pytest.mark.parametrize("check", [stores.check_provider, stores.check_instance])
def test_a_name_that_nobody_knows_is_told_with_those_there_are(check):
    """Every command says it alike, with the nearest name."""
    check(desk("builtin"), "builtin")
    with pytest.raises(ConfigError, match=r"no provider.* 'nosuch'; there are: builtin, mem0$"):
        check(desk("builtin", "mem0"), "nosuch")
    with pytest.raises(ConfigError, match="did you mean 'builtin'"):
        check(desk("builtin"), "builtinn")
    with pytest.raises(ConfigError, match=r"there are: none$"):
        check(desk(), "nosuch")


def test_a_moment_is_told_in_utc():
    """A plan shows the moment that a time without a zone means; positions and ids as they are."""
    for written in ("2026-05-31T18:00", "2026-05-31T20:00+02:00"):
        assert moment_text(str(moment_of(written))) == "2026-05-31T18:00:00.000Z"
    for same in ("p07:1234", "1" * 32):
        assert moment_text(str(moment_of(same))) == same
