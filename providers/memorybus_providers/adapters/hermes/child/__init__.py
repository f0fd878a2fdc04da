"""What runs under the Python of a Hermes installation: the standard library and Hermes alone.

The child process loads these files as a package of its own name (``start.py``), so they import each
other relatively and nothing else of memorybus; only `frames` is used on both sides.
"""
