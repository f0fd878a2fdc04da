"""The tools that a model calls, for any store of facts.

``arguments`` says what they take, ``reading`` and ``writing`` what they do, ``shown`` what a model
is shown of it.
"""
