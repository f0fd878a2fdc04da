"""What Hermes asks a memory provider about its setup, status and backup: before any session."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.surfaces.hermes.config import checkpoint_required
from memorybus.surfaces.hermes.home import HermesHome, find


class HermesSetup:
    """The hooks that are not about a conversation; what they call is imported when they are."""

    _home: Path | None
    _settings: Callable[[], Settings]

    def get_config_schema(self) -> list[dict[str, Any]]:
        """Return what Hermes's set-up and dashboard may ask for."""
        from memorybus.surfaces.hermes.install import install

        return install.config_schema()

    def save_config(self, values: Mapping[str, Any], hermes_home: str) -> None:
        """Write the answers into the home's ``memorybus.toml``.

        Raises:
            ConfigError: an answer is wrong; nothing is written.
        """
        from memorybus.surfaces.hermes.install import install

        install.save_config(values, find(Path(hermes_home)))

    def post_setup(self, hermes_home: str, config: dict[str, Any]) -> None:
        """Become Hermes's memory provider: ``hermes memory setup`` leaves that to us."""
        from hermes_cli.config import (  # type: ignore[import-not-found,unused-ignore]
            save_config,
        )

        from memorybus.surfaces.hermes.install import install

        said = install.post_setup(find(Path(hermes_home)), config)
        save_config(config)
        sys.stdout.write(f"\n  {said}\n\n")

    def get_status_config(self, provider_config: Any = None) -> dict[str, str]:
        """Return what ``hermes memory status`` shows; within two seconds, also without Redis."""
        from memorybus.surfaces.hermes.install import status

        return status.status_config(self._settings())

    def unavailable_reason(self) -> str:
        """Return why there is no memory, and what to do about it; "" if there is."""
        try:
            self._settings()
        except MemoryBusError as error:
            return str(error)
        return ""

    @property
    def pre_compress_checkpoint_api_version(self) -> int:
        """Which messages `on_pre_compress` gets: 1 all of the window, 2 without tool calls.

        Both are fsynced. Hermes calls only those of version 2 checkpoints; so this says 2 where its
        configuration demands one, and 1 elsewhere, as that leaves nothing out.
        """
        return 2 if checkpoint_required(self._hermes().config) else 1

    def backup_paths(self) -> list[str]:
        """Return what lies outside of Hermes's home and belongs into its backup."""
        from memorybus.surfaces.hermes.install import status

        return status.backup_paths(self._hermes(), self._settings())

    def _hermes(self) -> HermesHome:
        return find(self._home)
