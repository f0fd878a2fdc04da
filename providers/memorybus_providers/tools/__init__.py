"""The tools that a model calls, for any store of facts.

``arguments`` describes what the tools take, and ``reading`` runs them.
"""
