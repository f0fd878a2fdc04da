"""``memorybus archive``, ``replay``, ``rebuild`` and ``verify``: what is done with the past."""
