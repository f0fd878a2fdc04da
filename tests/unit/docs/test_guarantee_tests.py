"""The pages of the guarantees name tests that exist."""

import pytest
from guarantee_tests import BEST, Held, NotShown, best, with_best


def held(*names: str) -> list[Held]:
    """Return tests of one guarantee."""
    return [Held("tests/test_it.py", name, f"G1, G2: it holds {name}.") for name in names]


def test_every_guarantee_has_three_tests_that_show_it() -> None:
    """Each guarantee has three tests, chosen by name."""
    assert list(BEST) == [f"G{number}" for number in range(1, 11)]
    assert all(len(set(names)) == 3 for names in BEST.values())


def test_the_best_tests_are_listed_with_their_rules() -> None:
    """Between its marks a guarantee has its three tests with their rules, whatever was there."""
    page = "a\n<!-- shown G1 -->\nformer list\n<!-- end -->\nb"
    shown = with_best(page, {"G1": held(*BEST["G1"], "test_another")})
    assert f"- [`{BEST['G1'][0]}`](../tests/test_it.py): it holds {BEST['G1'][0]}.\n" in shown
    assert shown.count("test_it.py") == 3
    assert "former" not in shown


def test_a_test_that_is_gone_is_not_shown() -> None:
    """A chosen test that does not exist, or does not name its guarantee, is told by name."""
    with pytest.raises(NotShown, match=BEST["G1"][2]):
        best("G1", held(*BEST["G1"][:2]))
