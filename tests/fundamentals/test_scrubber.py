"""The scrubber: a block disappears however the stream is cut, and nothing else does (G9, G10)."""

from itertools import chain, combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.text.fence import CLOSE, MAX_BLOCK, OPEN, build_block, line
from memorybus.text.scrubber import MAX_TAG, StreamScrubber, scrub

BLOCK = build_block([("builtin", [line("drinks tea", at=1_683_504_000_000, speaker="Ann")])], 500)
HERMES = (
    "<memory-context>\n[System note: The following is recalled memory context.]\n\n"
    "- likes <b>tea</b>\n</memory-context>"
)
FRAGMENTS = [
    *("<", "</", ">", "/", " ", "\n", "x", "secret", "<b>", "&lt;", "é"),
    *("memory-context", "memory", "-context", "<mem", "</memory-", "ory-context>", "context>"),
    *(OPEN, CLOSE, f"{OPEN}\n", "< / MEMORY-Context >", "<memory-context\tid='1'>", OPEN[:-1]),
    *("<memory-contexts>", "<memory-context/>", "<memory-context\n>", BLOCK),
]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join)
limits = st.sampled_from([0, 1, 16, 17, 20, 40, 80, MAX_BLOCK])


def scrubbed(pieces: list[str], limit: int = MAX_BLOCK) -> str:
    """Return what a stream of these pieces shows in the end."""
    scrubber = StreamScrubber(limit)
    return "".join([*map(scrubber.feed, pieces), scrubber.finish()])


def cut(text: str, places: list[int]) -> list[str]:
    bounds = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]


# -- the property -------------------------------------------------------------------------------


@given(texts | st.text(), st.lists(st.integers(0, 1 << 16), max_size=20), limits)
def test_every_split_shows_what_the_whole_shows(text, places, limit):
    """For every split of the text, the pieces show what the whole shows, at every limit."""
    assert scrubbed(cut(text, places), limit) == scrubbed([text], limit)
    assert scrubbed(list(text), limit) == scrubbed([text], limit)


@given(texts | st.text())
def test_a_text_is_scrubbed_as_its_stream(text):
    """`scrub` takes no short cut that a stream would not take."""
    assert scrub(text) == scrubbed([text])


SHORT_BLOCK = "a<memory-context>\nb</memory-context>c"


def all_cuts(places: range, most: int) -> chain[tuple[int, ...]]:
    """Return every set of at most `most` of these places."""
    return chain.from_iterable(combinations(places, count) for count in range(most + 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SHORT_BLOCK, "ac"),
        ("<memory-context>a</memory-context>b", "b"),
        ("a<memory-<memory-context>b</memory-context>", "a<\\memory-"),
        ("a <memory-context> b", "a <memory-context> b"),
        ("a<memory-context>\nsecret", "a"),
        ("</memory-context></memory-contexts>", "</memory-contexts>"),
    ],
)
@pytest.mark.slow(reason="every way to cut long texts in four")
def test_every_set_of_three_cuts(text, expected):
    """Every way to cut a text at up to three places shows the same."""
    for places in all_cuts(range(1, len(text)), 3):
        assert scrubbed(cut(text, list(places))) == expected


@pytest.mark.parametrize("start", [1, 6, 11, 16, 21, 25])
@pytest.mark.slow(reason="every way to cut a text in neighbouring places")
def test_all_subsets_of_neighbouring_cuts(start):
    """All 2^12 sets of cuts within a window, moved over the whole block, show the same."""
    window = range(start, start + 12)
    for places in all_cuts(window, len(window)):
        assert scrubbed(cut(SHORT_BLOCK, list(places))) == "ac"


@pytest.mark.timeout(180)  # it computes
@pytest.mark.slow(reason="every way to cut a text in pieces")
def test_all_sets_of_cuts():
    """All 2^17 ways to cut a tag with an unfinished one before it show the same."""
    text = f"<{CLOSE}"
    for places in all_cuts(range(1, len(text)), len(text)):
        assert scrubbed(cut(text, list(places))) == "<\\"


@given(texts, limits)
def test_scrubbing_twice_changes_nothing(text, limit):
    """No two pieces join into a tag: what was shown holds no closing tag and no block."""
    once = scrub(text)

    assert scrub(once) == once
    assert scrubbed([once], limit).count(CLOSE) == 0


@given(st.text(), st.text())
def test_the_answer_around_a_block_is_kept(before, after):
    """What stands before and after a block is shown, character for character."""
    before, after = before.replace("<", "("), after.replace("<", "(")

    assert scrub(before + BLOCK + after) == before + after


@given(texts)
def test_text_without_a_tag_is_untouched(text):
    """Brackets, entities and the bare name are nobody's block."""
    harmless = text.replace("<m", "<n").replace("</", "<|").replace("< /", "< |")

    assert scrub(harmless) == harmless


# -- what counts as a block ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (f"a {BLOCK} b", "a  b"),
        (f"question\n\n{HERMES}", "question\n\n"),
        (f"{BLOCK}{BLOCK}", ""),
        ("a<memory-context>secret</memory-context>b", "ab"),
        ("a<MEMORY-CONTEXT>secret</Memory-Context>b", "ab"),
        ("a< memory-context >secret< / memory-context >b", "ab"),
        ('a<memory-context id="1" x>secret</memory-context\n>b', "ab"),
        ("a<memory-context>1<memory-context>2</memory-context>3</memory-context>b", "ab"),
        ("a</memory-context>b", "ab"),
        (f"a{BLOCK}b</memory-context>c", "abc"),
        ("<memory-contexts>a</memory-contexts>", "<memory-contexts>a</memory-contexts>"),
        ("<memory_context>a</memory_context>", "<memory_context>a</memory_context>"),
        ("if a < b and b > c", "if a < b and b > c"),
        ("a <<memory-context>x</memory-context>memory-context> b", "a <\\memory-context> b"),
        ("a<memory-context <mem<memory-context>x</memory-context>>", "a<memory-context <\\mem>"),
        ("1 << 2 <b>", "1 << 2 <b>"),
        ("ends with <", "ends with <"),
        ("ends with <memory-context", "ends with <memory-context"),
    ],
)
def test_what_is_a_block(text, expected):
    """Blocks go, in any case, with attributes and white space in the tag; the rest stays."""
    assert scrub(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The tag is <memory-context>, you see.", "The tag is <memory-context>, you see."),
        ("only <memory-context>", "only <memory-context>"),
        (f"I know <memory-context>. {BLOCK} Yes.", "I know <memory-context>.  Yes."),
        (f"<memory-context> {BLOCK} <memory-context> end", f"{OPEN}  {OPEN} end"),
    ],
)
def test_a_mention_loses_nothing(text, expected):
    """A tag that somebody only speaks of hides neither the rest of the answer nor a real block."""
    assert scrub(text) == expected


@pytest.mark.parametrize("cut_at", range(len(OPEN) + 1, len(BLOCK)))
def test_a_block_cut_off_leaks_nothing(cut_at):
    """Of a block that the stream breaks off, at whatever character, nothing is shown."""
    assert scrub("answer " + BLOCK[:cut_at]) == "answer "


def test_a_mention_is_held_no_longer_than_the_limit():
    """A mention delays the stream by the limit, then everything is shown (G10)."""
    scrubber = StreamScrubber(limit=100)
    text = "see <memory-context> and " + "x" * 200

    assert scrubber.feed(text[:100]) == "see "
    assert scrubber.feed(text[100:]) == text[4:]
    assert scrubber.finish() == ""


def test_a_block_that_never_closes_costs_no_more_than_the_limit():
    """After the limit the rest of the answer is shown again (G10)."""
    assert scrubbed([f"a {OPEN}\n" + "s" * 183 + "b" * 50], limit=200) == "a " + "b" * 50


def test_what_stands_behind_a_block_cut_off_is_hidden_with_it():
    """A mention inside a block that never closes is no way out of it."""
    assert scrub(f"a {OPEN}\nsecret {OPEN} secret") == "a "
    assert scrubbed([f"a {OPEN}\n{OPEN} secret" + "s" * 100 + "b"], limit=140) == "a b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{OPEN}abcd{CLOSE}", ""),
        (f"{OPEN}abcd", ""),
        (f"{OPEN}abcde", f"{OPEN}abcde"),
        (f"{OPEN}abcd{OPEN}", f"{OPEN}abcd"),
        (f"{OPEN}ab{CLOSE}{OPEN}cd{CLOSE}", ""),
    ],
)
def test_the_limit_is_exact(text, shown):
    """Exactly `limit` characters are withheld, tags counted; what a closed block held is free."""
    assert StreamScrubber(limit=20).feed(text) == shown


def test_a_closed_block_within_a_block_counts_no_more():
    """Inner blocks vanish from what is withheld, so that the outer one is still hidden whole."""
    inner = f"{OPEN}x{CLOSE}"

    assert scrubbed([f"a{OPEN}{inner * 10}{CLOSE}b"], limit=40) == "ab"


def test_the_longest_block_is_hidden_whole():
    """No block that `build_block` makes is longer than what is withheld."""
    block = build_block([("a", ["x" * 999] * 100)], MAX_BLOCK)

    assert len(block) > MAX_BLOCK - 1_000
    assert scrubbed(["a", block[:70], block[70:], "b"]) == "ab"


@given(st.integers(MAX_TAG - 40, MAX_TAG + 10))
def test_a_tag_has_a_longest_length(length):
    """A bracket is held for `MAX_TAG` characters; a longer one is text."""
    tag = "<memory-context".ljust(length + 1) + ">"
    text = f"{tag}x{CLOSE}"
    expected = "" if length <= MAX_TAG else f"{tag}x"

    assert scrub(text) == scrubbed(list(text)) == expected


MENTIONS = st.lists(
    st.sampled_from(["word", " ", "<", "<mem", OPEN + "!", "<b>", OPEN[:-1], " a" * 200]),
    max_size=30,
)


@given(MENTIONS, st.integers(0, 60))
def test_memory_is_bounded(pieces, limit):
    """Never is more withheld than the limit, and two tags at the end of a piece (G10)."""
    scrubber = StreamScrubber(limit)
    withheld = 0

    for piece in pieces:  # nothing here is removed: what was not shown is withheld
        withheld += len(piece) - len(scrubber.feed(piece))
        assert withheld <= limit + 2 * (MAX_TAG + 2)
    assert withheld <= len(scrubber.finish())


def test_a_tag_that_never_ends_is_held_no_longer_than_a_tag():
    """What begins like a tag and goes on for longer than any is text, shown at once (G10)."""
    begun = OPEN[:-1] + " a" * MAX_TAG

    assert StreamScrubber().feed(begun) == begun


def test_text_flows_at_once():
    """Where no tag can begin nothing is withheld, and a finished scrubber begins anew."""
    scrubber = StreamScrubber()

    assert [scrubber.feed(piece) for piece in ("a", " < b", " <", "b>", " <m")] == [
        "a",
        " < b",
        " ",
        "<b>",
        " ",
    ]
    assert scrubber.finish() == "<m"
    assert scrubber.feed("again") == "again"


@pytest.mark.parametrize(
    "text",
    [
        "<" * 500_000,
        "< " * 250_000,
        "<" + " " * 500_000,
        OPEN * 30_000,
        OPEN * 15_000 + CLOSE * 15_000,
        OPEN * 5_000 + "x" * 500_000,
        (OPEN[:-1] + " a" * 120) * 2_000,
    ],
    ids=["brackets", "pairs", "space", "open", "nested", "withheld", "attributes"],
)
@pytest.mark.slow(reason="measures long texts")
def test_hostile_text_takes_linear_time(text):
    """Half a million hostile characters pass at once; quadratic time would run into the timeout."""
    assert CLOSE not in scrub(text)
