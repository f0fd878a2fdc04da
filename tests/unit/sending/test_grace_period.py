"""When rows may be deleted from the spool."""

from memorybus.sending.grace_period import Ripening


def test_rows_ripen_in_their_order() -> None:
    """G1: a row may go when Redis has had it long enough, not with what came before it."""
    ripening = Ripening()
    ripening.note(10.0, 5)
    ripening.note(11.0, 5)
    ripening.note(12.0, 9)
    assert ripening.take(9.9) == 0
    assert ripening.take(11.5) == 5
    assert ripening.take(11.5) == 0
    ripening.note(13.0, 12)
    assert ripening.take(20.0) == 12


def test_what_is_sent_again_ripens_again() -> None:
    """G1: after a loss the time begins anew."""
    ripening = Ripening()
    ripening.note(10.0, 5)
    ripening.again()
    assert ripening.take(99.0) == 0
    ripening.note(20.0, 5)
    assert ripening.take(19.0) == 0
    assert ripening.take(20.0) == 5
