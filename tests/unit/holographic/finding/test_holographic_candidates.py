"""Which facts a search ranks: those whose words are worth most together."""

from collections import Counter
from unittest import mock

from hypothesis import example, given
from hypothesis import strategies as st
from memorybus_providers.finding import search
from memorybus_providers.ranking.ranking import Corpus

MAX_CHOSEN = 3
"""Rows that are chosen here, so that few rows are enough to leave some out."""

ROWS = st.lists(st.integers(1, 12), unique=True)
FOUND = st.lists(st.tuples(st.integers(1, 40), ROWS), max_size=6)
"""Amounts and rows; whole numbers, so that sums have no rounding."""


@given(FOUND)
@example([(10, [1, 2, 3]), (6, [4]), (6, [4])])  # the last comes late, and comes first
def test_rows_that_cannot_catch_up_are_left_out_and_no_others(found):
    """Leaving out rows that come too late changes nothing: the largest sums are chosen."""
    sums: Counter[int] = Counter()
    for amount, rows in found:
        sums.update(dict.fromkeys(rows, amount))
    largest = sorted(sums, key=lambda row: (-sums[row], -row))[:MAX_CHOSEN]
    given_in_order = [(float(amount), rows) for amount, rows in found]
    total = float(sum(amount for amount, _ in found))
    with mock.patch.object(search, "MAX_CANDIDATES", MAX_CHOSEN):
        assert search.most_worth(given_in_order, total) == largest


def test_rows_that_come_late_and_are_worth_as_much_are_chosen():
    """Rounding leaves no row out: of equals the newest are chosen, whichever term found them."""
    amount = Corpus(828, {"word": 100}).rarity("word")
    found = [(amount, [row]) for row in range(1, 10)]
    with mock.patch.object(search, "MAX_CANDIDATES", MAX_CHOSEN):
        assert search.most_worth(found[:MAX_CHOSEN], MAX_CHOSEN * amount) == [3, 2, 1]
        assert search.most_worth([(amount, [1, 2, 3]), *found[3:5]], 3 * amount) == [5, 4, 3]
        both = [(amount, [1, 2, 3]), (amount, [1, 2, 3]), (amount, [9]), (amount, [9])]
        assert search.most_worth(both, sum([amount] * 4)) == [9, 3, 2]
