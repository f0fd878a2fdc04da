"""The shipped contract, run on the skills of a Hermes home."""

import json
from pathlib import Path

from memorybus_hermes.skills import SkillsProvider
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract


class TestSkills(ProviderContract):
    def make_provider(self, tmp_path: Path) -> MemoryProvider:
        """Return an unopened instance."""
        (tmp_path / "hermes" / "skills").mkdir(parents=True, exist_ok=True)
        options = {"hermes_home": str(tmp_path / "hermes")}
        return SkillsProvider(ProviderConfig(name="skills", home=tmp_path, options=options))

    def state(self, provider: MemoryProvider, query: str) -> object:
        """Return Hermes's record of use."""
        path = provider.config.home / "hermes" / "skills" / ".usage.json"
        return json.loads(path.read_text()) if path.exists() else {}
