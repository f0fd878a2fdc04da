"""Applies a lane's events to a provider, in the way of its delivery class."""
