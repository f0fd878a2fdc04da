"""The cheap look at a text misses none of the identifiers in it."""

from hypothesis import example, given
from hypothesis import strategies as st
from memorybus_providers.language.words import identifiers, tokens


@given(st.text(alphabet="abZ09_./ é?", max_size=30))
@example("getUserToken")
@example("auth_service.py")
@example("E1234")
@example("see a/b")
def test_an_index_holds_each_identifier(text):
    """Whatever looks like code is among a text's tokens, beside its words."""
    found, held = identifiers(text), tokens(text)

    assert held[len(held) - len(found) :] == found
