"""The contract can fail: each of its rules is broken by some provider, and says so."""

import subprocess
import sys
from pathlib import Path

import pytest
from broken import CASES, Broken, Digesting, Forgetting, InBulk, Retracting, Sound, SoundLookup
from memorybus_providers.base import MemoryProvider, ProviderConfig
from memorybus_providers.contract import ProviderContract

RULES = sorted(name for name in dir(ProviderContract) if name.startswith("test_"))


def contract_of(broken: Broken) -> ProviderContract:
    """Return the contract of a provider class, as its author would write it."""

    class Contract(ProviderContract):
        deadline = 0.02 if broken.__name__ == "Slow" else 20.0  # the machine may stand still

        def make_provider(self, tmp_path: Path) -> MemoryProvider:
            return broken(ProviderConfig(name="notes", home=tmp_path))

    return Contract()


@pytest.mark.parametrize(
    ("rule", "broken", "raises"), CASES, ids=[f"{rule}-{who.__name__}" for rule, who, _ in CASES]
)
def test_a_broken_provider_fails_its_rule(rule, broken, raises, tmp_path):
    """A provider that breaks a rule fails that rule's test, for that reason (G4, G5)."""
    with pytest.raises(raises):
        getattr(contract_of(broken), f"test_{rule}")(tmp_path)


def test_every_rule_can_fail():
    """No rule is without a provider that breaks it."""
    assert {f"test_{rule}" for rule, _, _ in CASES} == set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_the_sound_provider_passes(rule, tmp_path):
    """What the broken ones are made of breaks nothing (a rule may be skipped)."""
    getattr(contract_of(Sound), rule)(tmp_path)


def test_without_pytest_the_import_names_the_remedy():
    """pytest is no dependency of the package; importing the contract says how to get it."""
    program = "import sys; sys.modules['pytest'] = None; import memorybus_providers.contract"

    ran = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=30
    )

    assert "pip install pytest" in ran.stderr.splitlines()[-1]


def test_a_sound_lookup_passes(tmp_path):
    """A backend that finds events by their ids satisfies the rule of its class (G4)."""
    contract_of(SoundLookup).test_a_lookup_knows_what_the_backend_holds(tmp_path)


@pytest.mark.parametrize("rule", [rule for rule in RULES if "digest" in rule or "order_of" in rule])
def test_a_sound_digest_passes(rule, tmp_path):
    """A digest of what the events determine satisfies the rules of digests (G8)."""
    getattr(contract_of(Digesting), rule)(tmp_path)


@pytest.mark.parametrize("rule", [rule for rule in RULES if "retracted" in rule])
def test_a_sound_retraction_passes(rule, tmp_path):
    """A provider that forgets by event id, owner and lineage satisfies the rules (G8)."""
    getattr(contract_of(Retracting), rule)(tmp_path)


@pytest.mark.parametrize(
    "rule",
    [
        rule
        for rule in RULES
        if any(w in rule for w in ("forgotten", "erasure", "export", "owners"))
    ],
)
def test_a_sound_erasure_passes(rule, tmp_path):
    """A provider that erases by owner, out of its file too, satisfies the rules."""
    getattr(contract_of(Forgetting), rule)(tmp_path)


@pytest.mark.parametrize("rule", [rule for rule in RULES if "in_bulk" in rule])
def test_a_sound_bulk_call_passes(rule, tmp_path):
    """A provider whose bulk call does what single calls do satisfies the rules (G4)."""
    getattr(contract_of(InBulk), rule)(tmp_path)
