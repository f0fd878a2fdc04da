"""A Redis server of our own in the data directory, for users who have no other."""
