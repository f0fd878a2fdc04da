"""What operators asked of dead letters, carried out by the owner of their lane (G5, G6).

The lane and an applier enter. Only a lane set runs it.
"""
