"""``memorybus provider``: the instances, one late, set up in a dialogue, tried out."""
