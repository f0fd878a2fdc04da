"""A recording provider whose state lies on one host."""

from helpers.providers.recording import Transactional


class Local(Transactional):
    """Its lanes and recalls stay where its home is."""

    placement = "local"
