"""Applies a lane's events to a provider, in the way of its delivery class.

This package imports lanes and calls. Only a lane set (`hosting`) chooses and runs an applier.
"""
