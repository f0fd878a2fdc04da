"""Which of the facts that a store has found answer a question, and why; pure.

A store hands in facts and how rare its words are; it gets them back in order, cut where they stop
answering. ``ranking`` is the way through: ``evidence`` weighs words and neighbours, ``answers`` the
kind of answer, ``nearness`` the meaning, and ``reasons`` explains.
It imports ``language`` and the provider contract alone.
"""
