"""Carries out what operators asked of dead letters, as the owner of their lane (G5, G6).

The lane and an applier enter. Only a lane set runs it.
"""
