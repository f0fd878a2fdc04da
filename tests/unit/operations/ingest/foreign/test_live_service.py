"""What a running service may answer, and what is an address."""

import pytest
from memorybus_console.operations.ingest.foreign.records import ForeignError
from memorybus_console.operations.ingest.foreign.service import (
    SOURCES,
    ForeignService,
    is_address,
)


@pytest.mark.parametrize(("source", "name"), [("hindsight", "total"), ("honcho", "pages")])
@pytest.mark.parametrize("count", [None, "2", 1.5])
def test_a_count_that_is_no_number_is_refused_by_its_name(source, name, count):
    """A service is another program: what it answers is checked before it is used."""
    pages = SOURCES[source].pages(lambda path, body=None: {"items": [{"id": "x"}], name: count})
    with pytest.raises(ForeignError, match=name):
        list(pages)


def test_an_address_is_told_from_a_file():
    """Only http and https are addresses; one that cannot be read is refused with the reason."""
    assert [is_address(text) for text in ("HTTP://a", "https://b", "c:/d", "e.json")] == [
        True, True, False, False,
    ]  # fmt: skip
    with pytest.raises(ForeignError, match="not an address"):
        ForeignService("http://[x", {})
