"""News: what is announced reaches every runner's inbox, and wakes it."""

import threading

from memorybus_workers.lanes.news import News


def test_what_is_announced_is_in_every_inbox_until_it_is_taken():
    """Each runner hears of all partitions with news, and takes them once."""
    news = News()
    one, other = news.subscribe(), news.subscribe()
    news.announce({1})
    news.announce({2})
    assert one.take() == {1, 2}
    assert one.take() == set()
    assert other.take() == {1, 2}


def test_an_inbox_that_is_given_up_gets_nothing_more():
    """G10: what is announced is not kept for a runner that was given up."""
    news = News()
    inbox = news.subscribe()
    news.unsubscribe(inbox)
    news.unsubscribe(inbox)
    news.announce({1})
    assert inbox.take() == set()


def test_what_came_since_the_last_look_is_not_waited_for():
    """A runner that was woken while it worked does not rest; taking is what ends the call."""
    inbox = News().subscribe()
    inbox.put()
    began = threading.Event()

    def rest() -> None:
        inbox.wait(60)
        began.set()

    threading.Thread(target=rest, daemon=True).start()
    assert began.wait(10)


def test_a_runner_that_rests_is_woken():
    """What is announced while a runner rests ends its rest."""
    news = News()
    inbox = news.subscribe()
    woken = threading.Event()

    def rest() -> None:
        inbox.wait(60)
        woken.set()

    threading.Thread(target=rest, daemon=True).start()
    news.announce({3})
    assert woken.wait(10)
    assert inbox.take() == {3}
