"""From a lane's events into a provider, by delivery class.

Lanes and calls enter. Only a lane set chooses and runs an applier.
"""
