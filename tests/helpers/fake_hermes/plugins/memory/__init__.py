"""Finds and loads plugins by the same two functions as Hermes 0.19."""

import importlib.util
import os
import sys
from pathlib import Path


def find_provider_dir(name):
    """Return a plugin's directory below HERMES_HOME."""
    found = Path(os.environ["HERMES_HOME"]) / "plugins" / name
    return found if found.is_dir() else None


def _load_provider_from_dir(directory):
    name = f"_hermes_user_memory_{directory.name}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, directory / "__init__.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    collector = _Collector()
    sys.modules[name].register(collector)
    return collector.provider


class _Collector:
    provider = None

    def register_memory_provider(self, provider):
        self.provider = provider
