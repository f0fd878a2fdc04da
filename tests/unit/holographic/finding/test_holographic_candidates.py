"""Which facts a search ranks: those whose words are worth most together."""

from collections import Counter
from unittest import mock

from hypothesis import example, given
from hypothesis import strategies as st
from memorybus_providers.finding import search
from memorybus_providers.ranking.ranking import Corpus
from unit.holographic.holographic_feeding import AT, MINE, feed, stored, turn

MAX_CHOSEN = 3
"""Rows that are chosen here, so that few rows are enough to leave some out."""

ROWS = st.lists(st.integers(1, 12), unique=True)
LONG = " ".join(f"Tip {n}: this oven heats evenly if its fan is clean." for n in range(60))
"""An answer of more than `MAX_ANSWERS` pieces in eight turns."""

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

    assert search.most_worth(given_in_order, total, MAX_CHOSEN) == largest


def test_rows_that_come_late_and_are_worth_as_much_are_chosen():
    """Rounding leaves no row out: of equals the newest are chosen, whichever term found them."""
    amount = Corpus(828, {"word": 100}).rarity("word")
    found = [(amount, [row]) for row in range(1, 10)]
    late = [(amount, [1, 2, 3]), *found[3:5]]
    both = [(amount, [1, 2, 3]), (amount, [1, 2, 3]), (amount, [9]), (amount, [9])]

    assert search.most_worth(found[:3], 3 * amount, MAX_CHOSEN) == [3, 2, 1]
    assert search.most_worth(late, 3 * amount, MAX_CHOSEN) == [5, 4, 3]
    assert search.most_worth(both, sum([amount] * 4), MAX_CHOSEN) == [9, 3, 2]


def test_few_pieces_of_long_answers_are_ranked(provider):
    """However many have the words, a recall ranks `MAX_ANSWERS`; the person's words all count."""
    turns = 8
    for n in range(turns):
        feed(provider, [turn(f"Tell me of oven {n}", LONG)], first=n + 1, at=AT + n)

    with (
        provider.opened.reading(MINE, 5) as facts,
        mock.patch.object(search, "rank_facts", wraps=search.rank_facts) as ranked,
    ):
        facts.answer("Which oven heats evenly with a clean fan?", MINE, now=AT + 9)

    talk, answers = (call.args[1] for call in ranked.call_args_list)
    assert len(talk) == turns
    assert len(answers) == search.MAX_ANSWERS < len(stored(provider)) - turns
