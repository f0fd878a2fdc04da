"""Hostile text never steers the terminal."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus_console.views.render import json_text, one_line, visible

any_text = st.text(st.characters(codec=None), max_size=60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain äöü 漢字 🐋", "plain äöü 漢字 🐋"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("bell\x07 nul\x00 del\x7f csi\x9b", "bell\\x07 nul\\x00 del\\x7f csi\\x9b"),
        ("over\rwrite", "over\\x0dwrite"),
        ("\u202eevil", "\\u202eevil"),
        ("half \ud83d", "half \\ud83d"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("[bold]markup[/bold]", "[bold]markup[/bold]"),
    ],
)
def test_steering_characters_become_visible(text, expected):
    """Control characters, direction overrides and surrogates are shown, the rest stays."""
    assert visible(text) == expected


@given(any_text)
def test_visible_text_can_always_be_printed(text):
    """Whatever comes in, what goes out encodes and holds no control but newline and tab."""
    shown = visible(text)

    shown.encode()
    assert not [c for c in shown if unicodedata.category(c) == "Cc" and c not in "\n\t"]


@given(any_text, st.integers(1, 40))
def test_one_line_is_one_line_of_at_most_its_width(text, width):
    """A summary never breaks the line and never outgrows its place."""
    line = one_line(text, width)

    assert len(line) <= width
    assert "\n" not in line
    assert "\t" not in line


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | any_text,
        lambda inner: st.lists(inner) | st.dictionaries(any_text, inner),
        max_leaves=8,
    ),
    st.sampled_from([None, 2]),
)
def test_json_stays_the_same_value(value, indent):
    """Escaping for the terminal does not change what the JSON says."""
    text = json_text(value, indent=indent)

    text.encode()
    assert json.loads(text) == value
    assert not [c for c in text if unicodedata.category(c) == "Cc" and c != "\n"]
