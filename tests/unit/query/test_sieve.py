"""A plan made ready says what its query and its spans say, and what comes next."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.query.filter import Matcher, Sieve
from memorybus.query.query import Query, Row
from memorybus.query.ranges import WHOLE, Plan, Span

WORDS = st.sampled_from(("", "a", "b", "c"))
SOME = st.lists(WORDS, max_size=2).map(tuple)
ROWS = st.builds(Row, *[WORDS] * len(Row.__struct_fields__))
QUERIES = st.fixed_dictionaries({}, optional=dict.fromkeys(Query.__struct_fields__, SOME)).map(
    lambda words: Query(**words)
)


@given(query=QUERIES, row=ROWS)
def test_a_matcher_says_what_the_query_says(query: Query, row: Row) -> None:
    """Sets in place of tuples change the speed and nothing else."""
    assert Matcher(query).wants(row) == query.wants(row)


def test_a_tombstone_comes_before_the_plan() -> None:
    """What is forgotten is left out whatever a plan takes; other events are not."""
    sieve = Sieve(WHOLE, 0, (Query(users=("bob",)),))
    row = Row("i", "s", "TurnCompleted", "a", "bob", "", "", "")
    assert sieve.holds(row) == "forgotten"
    assert sieve.holds(Row("i", "s", "TurnCompleted", "a", "ann", "", "", "")) is None
    assert not sieve.open


@pytest.mark.parametrize(
    ("spans", "n", "found"),
    [
        (None, 7, 7),
        ((), 7, None),
        ((Span(10, 20),), 7, 10),
        ((Span(10, 20),), 15, 15),
        ((Span(10, 20),), 21, None),
        ((Span(1, 5), Span(30)), 6, 30),
        ((Span(1, 5), Span(30)), 99, 99),
        ((Span(5, 3),), 1, None),
    ],
)
def test_what_a_plan_takes_next(spans: tuple[Span, ...] | None, n: int, found: int | None) -> None:
    """The next number that is taken, from one on; None behind the last."""
    plan = Plan(spans={} if spans is None else {0: spans})
    assert plan.next(0, n) == found
