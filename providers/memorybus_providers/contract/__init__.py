"""The contract of a provider as tests: subclass `ProviderContract` and let pytest run it.

::

    from memorybus_providers.base import ProviderConfig
    from memorybus_providers.contract import ProviderContract

    class TestNotes(ProviderContract):
        def make_provider(self, tmp_path):
            return NotesProvider(ProviderConfig(name="notes", home=tmp_path))

A provider is tested for what it declares; rules about anything else are skipped, with the reason.
The rules, each a test with one sentence, by module:

- ``declared``: kind, delivery class, capabilities, hooks, tools and options are well formed and
  agree with each other; a provider can be shut down at any time.
- ``once``: an event's effect happens once; a stale owner changes nothing (G4, G5).
- ``recalled``: a recall finds the asker's memories and no others, in time, whatever the text.
- ``digested``: the digest stands for the state, in any order of keys (G8).
- ``retracted``: what was retracted is gone, and nothing else.
- ``forgotten``: an erasure takes all of a scope and no more; an export yields what it would take.
- ``bulk``: several turns in one call are remembered as they would be one by one.

``rules`` has what an author supplies or overrides, ``samples`` the events that are applied.
See ``docs/providers.md``.
"""

try:
    import pytest as pytest
except ImportError as error:
    raise ImportError(
        "the provider contract runs under pytest, which is not installed: pip install pytest"
    ) from error

from memorybus_providers.contract.bulk import BulkRules
from memorybus_providers.contract.declared import DeclaredRules
from memorybus_providers.contract.digested import DigestRules
from memorybus_providers.contract.forgotten import ForgetRules
from memorybus_providers.contract.once import OnceRules
from memorybus_providers.contract.recalled import RecallRules
from memorybus_providers.contract.retracted import RetractRules
from memorybus_providers.contract.rules import ContractBroken

__all__ = ["ContractBroken", "ProviderContract"]


class ProviderContract(
    DeclaredRules, OnceRules, RecallRules, DigestRules, RetractRules, ForgetRules, BulkRules
):
    """All rules. Define `make_provider`; override `remember` or `state` if they do not fit.

    Every test takes pytest's ``tmp_path`` alone and fails with `ContractBroken`, whose message
    names what was declared and what was seen.
    """
