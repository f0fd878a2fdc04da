"""When rows may be deleted from the spool."""

from memorybus.outbox.rules import RowRetention


def test_rows_may_go_in_their_order():
    """G1: a row may go when Redis has had it long enough, not with what came before it."""
    retention = RowRetention()
    retention.note(10.0, 5)
    retention.note(11.0, 5)
    retention.note(12.0, 9)
    assert retention.take_upto(9.9) == 0
    assert retention.take_upto(11.5) == 5
    assert retention.take_upto(11.5) == 0
    retention.note(13.0, 12)
    assert retention.take_upto(20.0) == 12


def test_what_is_sent_again_stays_as_long_again():
    """G1: after a loss the time begins anew."""
    retention = RowRetention()
    retention.note(10.0, 5)
    retention.restart()
    assert retention.take_upto(99.0) == 0
    retention.note(20.0, 5)
    assert retention.take_upto(19.0) == 0
    assert retention.take_upto(20.0) == 5
