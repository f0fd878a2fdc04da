"""What commands ask about providers, which they may not import: kinds, instances, trials, erasures.

Instances that serve nobody enter; no lane and no Redis does. Each inquiry is a process of its own,
which the program of the workers starts, and which prints what it finds as JSON lines.
"""
