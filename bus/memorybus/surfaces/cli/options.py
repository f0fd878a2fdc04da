"""What every command takes: where the bus is, and whether the result is JSON."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from memorybus.settings import Settings, load
from memorybus.surfaces.output import Output

RUN = Group("Run", sort_key=1)
MEMORIES = Group("Memories", sort_key=2)
LOOK = Group("Look", sort_key=3)
CARE = Group("Care", sort_key=4)


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    """Options that stand for settings; each may come from memorybus.toml or MEMORYBUS_* too."""

    json: Annotated[bool, Parameter(negative="", help="Print the result as JSON.")] = False
    url: Annotated[
        str | None, Parameter(help="Redis of the log; the embedded server if none is configured.")
    ] = None
    data_dir: Annotated[
        Path | None, Parameter(help="Where spools, the embedded server and memories live.")
    ] = None
    namespace: Annotated[str | None, Parameter(help="Prefix of every Redis key.")] = None

    def settings(self) -> Settings:
        """Return the settings: file, environment, then these options."""
        return load(
            url=self.url,
            data_dir=None if self.data_dir is None else self.data_dir.absolute(),
            namespace=self.namespace,
        )

    def output(self) -> Output:
        """Return the streams to print to."""
        return Output(json=self.json)


DEFAULT = Common()
