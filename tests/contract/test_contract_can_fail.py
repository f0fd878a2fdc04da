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


SOUND: dict[Broken, tuple[str, ...]] = {
    Sound: ("",),
    SoundLookup: ("lookup",),
    Digesting: ("digest", "order_of"),
    Retracting: ("retracted",),
    Forgetting: ("forgotten", "erasure", "export", "owners"),
    InBulk: ("in_bulk",),
}
"""What the broken ones are made of, and words of the rules that these satisfy (or skip)."""


@pytest.mark.parametrize(
    ("sound", "rule"),
    [
        (who, rule)
        for who, words in SOUND.items()
        for rule in RULES
        if any(w in rule for w in words)
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_a_sound_provider_passes(sound, rule, tmp_path):
    """What breaks nothing satisfies the rules of its abilities: of digests (G8), of calls (G4)."""
    getattr(contract_of(sound), rule)(tmp_path)


def test_without_pytest_the_import_names_the_remedy():
    """pytest is no dependency of the package; importing the contract says how to get it."""
    program = "import sys; sys.modules['pytest'] = None; import memorybus_providers.contract"

    ran = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=30
    )

    assert "pip install pytest" in ran.stderr.splitlines()[-1]
