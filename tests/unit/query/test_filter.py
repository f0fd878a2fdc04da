"""A plan made ready says what its query and its spans say, and what comes next."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.query.filter import EventFilter, Matcher
from memorybus.query.query import EventRow, Query
from memorybus.query.ranges import WHOLE, NumberRange, Plan

WORDS = st.sampled_from(("", "a", "b", "c"))
SOME = st.lists(WORDS, max_size=2).map(tuple)
TIMES = st.integers(0, 3)
ROWS = st.builds(EventRow, *[WORDS] * (len(EventRow.__struct_fields__) - 1), TIMES)
QUERIES = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(Query.__struct_fields__, SOME) | {"upto": TIMES}
).map(lambda words: Query(**words))


@given(query=QUERIES, row=ROWS)
def test_a_matcher_says_what_the_query_says(query, row):
    """Sets in place of tuples change the speed and nothing else."""
    assert Matcher(query).wants(row) == query.wants(row)


def test_a_tombstone_comes_before_the_plan():
    """What is forgotten is left out whatever a plan takes; other events are not."""
    event_filter = EventFilter(WHOLE, 0, (Query(users=("bob",)),))
    row = EventRow("i", "s", "TurnCompleted", "a", "bob", "", "", "")
    assert event_filter.omission(row) == "forgotten"
    assert (
        event_filter.omission(EventRow("i", "s", "TurnCompleted", "a", "ann", "", "", "")) is None
    )
    assert not event_filter.takes_all


@pytest.mark.parametrize(
    ("spans", "n", "found"),
    [
        (None, 7, 7),
        ((), 7, None),
        ((NumberRange(10, 20),), 7, 10),
        ((NumberRange(10, 20),), 15, 15),
        ((NumberRange(10, 20),), 21, None),
        ((NumberRange(1, 5), NumberRange(30)), 6, 30),
        ((NumberRange(1, 5), NumberRange(30)), 99, 99),
        ((NumberRange(5, 3),), 1, None),
    ],
)
def test_what_a_plan_takes_next(spans, n, found):
    """The next number that is taken, from one on; None behind the last."""
    plan = Plan(spans={} if spans is None else {0: spans})
    assert plan.next(0, n) == found
