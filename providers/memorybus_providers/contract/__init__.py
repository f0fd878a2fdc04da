"""The contract of a provider as tests: subclass `ProviderContract` and let pytest run it.

::

    from memorybus_providers.base import ProviderConfig
    from memorybus_providers.contract import ProviderContract

    class TestNotes(ProviderContract):
        def make_provider(self, tmp_path):
            return NotesProvider(ProviderConfig(name="notes", home=tmp_path))

What a provider does not declare is skipped, with the reason. See ``docs/providers.md``.
"""

try:
    import pytest as pytest
except ImportError as error:
    raise ImportError(
        "the provider contract runs under pytest, which is not installed: pip install pytest"
    ) from error

from memorybus_providers.contract.declared import DeclaredRules
from memorybus_providers.contract.digested import DigestRules
from memorybus_providers.contract.once import OnceRules
from memorybus_providers.contract.recalled import RecallRules
from memorybus_providers.contract.retracted import RetractRules
from memorybus_providers.contract.rules import ContractBroken

__all__ = ["ContractBroken", "ProviderContract"]


class ProviderContract(DeclaredRules, OnceRules, RecallRules, DigestRules, RetractRules):
    """All rules. Supply `make_provider`; override `remember` or `state` where they do not fit.

    Every test takes pytest's ``tmp_path`` alone and fails with `ContractBroken`, whose message
    names what was declared and what was seen.
    """
