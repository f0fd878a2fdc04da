"""Who sees the demo while it is played."""

from collections.abc import Mapping

from memorybus.operations.demo.play import PlayStep


class Audience:
    """Sees what happens. This one looks away; a view shows it to people.

    Attributes:
        pause: seconds between steps, so that people can follow.
    """

    pause = 0.0

    def show(self, session: str, step: PlayStep) -> None:
        """See a step that was published in a session."""

    def progress(self, published: int, applied: Mapping[str, int]) -> None:
        """See how many events are published, and how many each provider has applied."""
