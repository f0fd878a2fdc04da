"""The code of the child process, which runs under the Python of a Hermes installation.

It may import only the standard library and Hermes. ``start.py`` loads these files as a package of
another name, so they import each other relatively and nothing else of memorybus. Only `frames` is
used on both sides.
"""
