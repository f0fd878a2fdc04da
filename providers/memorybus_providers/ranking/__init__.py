"""Decides which of the facts that a store has found answer a question, and why; pure.

A store passes facts and the rarity of its words, and gets the facts back in order, cut where they
no longer answer. ``ranking`` leads through the steps: ``evidence`` weighs words and neighbours,
``nearness`` the meaning, ``shares`` joins both pools, and ``reasons`` explains. This package
imports only ``language`` and the provider contract.
"""
