"""A recording provider whose state lies on one host."""

from helpers.providers.recording import Transactional


class Local(Transactional):
    """Its lanes and recalls stay where its home is."""

    placement = "local"


class NeverOpened(Local):
    """It can neither be opened nor shut down."""

    def open(self) -> None:
        """Fail, as a store on a broken disk does."""
        raise OSError("no")

    def shutdown(self) -> None:
        """Fail, since there is nothing to shut down."""
        raise AttributeError("db")
