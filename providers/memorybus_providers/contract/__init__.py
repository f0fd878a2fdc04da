"""Tests whether a provider keeps its contract: subclass `ProviderContract` and run pytest.

::

    from memorybus_providers.base import ProviderConfig
    from memorybus_providers.contract import ProviderContract

    class TestNotes(ProviderContract):
        def make_provider(self, tmp_path):
            return NotesProvider(ProviderConfig(name="notes", home=tmp_path))

A provider is tested for what it declares; tests of anything else are skipped, and pytest shows why.
Each rule is a test, whose docstring states it in one sentence. The modules are:

- ``declared``: kind, delivery class, capabilities, hooks, tools and options are well formed and
  agree with each other; a provider can be shut down at any time.
- ``once``: an event's effect happens once; a stale owner changes nothing (G4, G5); several turns in
  one call are remembered as if each came in its own call.
- ``recalled``: for any text, a recall finds in time the asker's memories and no others; the digest
  represents the state, in any order of keys (G8).
- ``forgotten``: an erasure removes all of a scope and nothing else; an export yields what an
  erasure would remove; what was retracted is gone, and nothing else is.

``rules`` has the methods that an author supplies or overrides, and ``samples`` the events that are
applied. See ``docs/providers.md``.
"""

try:
    import pytest as pytest
except ImportError as error:
    raise ImportError(
        "the provider contract runs under pytest, which is not installed: pip install pytest"
    ) from error

from memorybus_providers.contract.declared import DeclaredRules
from memorybus_providers.contract.forgotten import ForgetRules, RetractRules
from memorybus_providers.contract.once import BulkRules, OnceRules
from memorybus_providers.contract.recalled import DigestRules, RecallRules
from memorybus_providers.contract.rules import ContractBroken

__all__ = ["ContractBroken", "ProviderContract"]


class ProviderContract(
    DeclaredRules, OnceRules, RecallRules, DigestRules, RetractRules, ForgetRules, BulkRules
):
    """The tests of all rules. Define `make_provider`; override `remember` or `state` if needed.

    Every test takes only pytest's ``tmp_path``, and fails with `ContractBroken`, whose message says
    what was declared and what was seen.
    """
