"""When rows may be deleted from the spool."""

from memorybus.sending.flusher import GracePeriod


def test_rows_may_go_in_their_order() -> None:
    """G1: a row may go when Redis has had it long enough, not with what came before it."""
    grace_period = GracePeriod()
    grace_period.note(10.0, 5)
    grace_period.note(11.0, 5)
    grace_period.note(12.0, 9)
    assert grace_period.take_upto(9.9) == 0
    assert grace_period.take_upto(11.5) == 5
    assert grace_period.take_upto(11.5) == 0
    grace_period.note(13.0, 12)
    assert grace_period.take_upto(20.0) == 12


def test_what_is_sent_again_stays_as_long_again() -> None:
    """G1: after a loss the time begins anew."""
    grace_period = GracePeriod()
    grace_period.note(10.0, 5)
    grace_period.restart()
    assert grace_period.take_upto(99.0) == 0
    grace_period.note(20.0, 5)
    assert grace_period.take_upto(19.0) == 0
    assert grace_period.take_upto(20.0) == 5
