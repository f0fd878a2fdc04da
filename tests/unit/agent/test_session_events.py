"""The events of a session, made of what an agent says."""

from memorybus.agent.session_events import session_details


def test_details_are_clean_and_bounded() -> None:
    """What a host tells of a session is cleaned like all text, and bounded; none is cut (G10)."""
    told = {"chat_name": "a\0b", "thread_id": "", "chat_id": "x" * 1_025, "k" * 1_025: "v"}
    assert session_details(told) == {"chat_name": "a\ufffdb"}
    assert session_details(None) == {}
    many = {f"n{number}": "v" for number in range(40)}
    assert list(session_details(many)) == list(many)[:32]
