"""``memorybus provider``: list, add, set up, test, pause, limit, move and remove instances."""
