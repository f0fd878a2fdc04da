"""How the errors of many partitions are shown in one line."""

from memorybus_workers.archiving.round import summarize_errors


def test_the_errors_of_many_partitions_are_one_sentence_and_a_number():
    """G7: an archive that is not mounted is no wall of one sentence for each partition."""
    lacking = {n: f"the archive lacks events of partition p{n:02d}" for n in range(16)}
    assert summarize_errors(lacking) == (
        "the archive lacks events of partition p00; and 15 more partitions: memorybus archive run"
    )
    assert summarize_errors(dict(list(lacking.items())[:2])).endswith(
        "; and 1 more partition: memorybus archive run"
    )


def test_an_error_that_all_partitions_share_comes_once():
    """One error is shown as it is, whether of one partition or of all."""
    assert summarize_errors({}) == ""
    assert summarize_errors({3: "no room", 5: "no room"}) == "no room"
