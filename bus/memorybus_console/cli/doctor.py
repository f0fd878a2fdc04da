"""``memorybus doctor``: check everything."""

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter
from memorybus.health.finding import Check

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, Common
from memorybus_console.result import Presentation, Stepwise

if TYPE_CHECKING:
    from rich.text import Text


class Examined(msgspec.Struct, frozen=True):
    """What was checked, and whether all is well."""

    ok: bool
    checks: list[Check]


@shown
def run_doctor(
    *,
    deep: Annotated[
        bool,
        Parameter(
            negative="", help="Write a word into every provider, recall it, and remove it again."
        ),
    ] = False,
    common: Common = DEFAULT,
) -> "Stepwise[Examined]":
    """Check everything, and publish a canary event to see that it reaches every lane.

    Every provider's lane passes the canary on without calling its backend. With --deep the backends
    are called, too: that leaves four events in the log, and costs what those calls cost.

    Exit code 1 if a check fails; each failed check says what to do.

    For example:

    - `memorybus doctor`
    - `memorybus doctor --deep`
    - `memorybus doctor --json | jq '.checks[] | select(.ok | not)'`
    """
    from memorybus_console.operations.doctor import doctor

    return Stepwise(_examine(doctor.examine(common.settings(), deep=deep)))


def _examine(checks: Iterable[Check]) -> "Generator[Text, None, Presentation[Examined]]":
    from memorybus_console.views.render import check_line

    done = []
    for check in checks:
        done.append(check)
        yield check_line(check)
    ok = all(check.ok for check in done)
    return Presentation(Examined(ok, done), (), code=int(not ok))
