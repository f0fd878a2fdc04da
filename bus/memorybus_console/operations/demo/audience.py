"""The interface of a view that shows the demo while it is played."""

from collections.abc import Mapping

from memorybus_console.operations.demo.play import PlayStep


class Audience:
    """Receives what happens in the demo. This class ignores it; a view shows it to people.

    Attributes:
        pause: seconds between steps, so that people can follow.
    """

    pause = 0.0

    def show(self, session: str, step: PlayStep) -> None:
        """Receive a step that was published in a session."""

    def progress(self, published: int, applied: Mapping[str, int]) -> None:
        """Receive how many events are published, and how many each provider has applied."""
