"""Carries out operators' requests about dead letters, as the owner of their lane (G5, G6).

This package uses the lane and an applier. Only a lane set runs it.
"""
