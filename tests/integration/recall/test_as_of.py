"""What was known at a time: asked in Python and by command, and told where it cannot be said."""

import json

JANUARY, MARCH = 1_767_225_600_000, 1_772_323_200_000
QUESTION = "Where do I live?"


def test_what_was_known_then(make_world):
    """What was said later does not count; who cannot say is named with the reason (G9)."""
    world = make_world(providers=("holographic", "builtin"))
    world.worker()
    with world.bus() as bus:
        session = bus.session("s", user="ana", warm=False)
        session.turn_completed("I live in Lisbon", "", at=JANUARY)
        session.turn_completed("I moved to Oslo", "", at=MARCH)
        assert bus.flush("logged", 30)
        then = bus.recall(QUESTION, user="ana", as_of=MARCH - 1, timeout=30)
        now = bus.recall(QUESTION, user="ana", timeout=30)

    assert [(one.text, one.until) for one in then.results] == [("I live in Lisbon", None)]
    assert list(then.missing) == ["builtin"]
    assert "it keeps no times" in then.missing["builtin"]
    assert {(one.text, one.until, one.before) for one in now.results} == {
        ("I moved to Oslo", None, ""),
        ("I live in Lisbon", None, ""),
    }
    assert "[2026-03-01, user] I moved to Oslo" in now.text
    assert now.missing == {}

    asked = ("recall", QUESTION, "--user", "ana", "--json", "--as-of")
    done = world.run(*asked, "2026-02-01")
    assert [one["text"] for one in json.loads(done.stdout)["results"]] == ["I live in Lisbon"]
    assert "builtin did not answer" in done.stderr
    assert world.run(*asked, "last week").returncode == 2
