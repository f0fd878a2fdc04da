"""Finds facts for a question in the same way for every store.

A store answers the small questions of ``source``: which facts contain a word, and what surrounds
them. ``search`` makes answers from these, with the packages ``language`` and ``ranking``:
``vocabulary`` knows the forms of words, ``validity`` marks what was replaced, ``names`` finds what
is said of a name, and ``profile`` what is known if nothing is asked. This package imports no
database; stores and tools use it.
"""
