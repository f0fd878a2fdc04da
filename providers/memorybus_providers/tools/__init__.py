"""The tools that a model calls, for any store of facts.

``arguments`` says what the tools take, ``reading`` and ``writing`` run them, and ``shown`` makes
the results that a model sees.
"""
