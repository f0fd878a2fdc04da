"""Makes provider instances in a worker, registers them, runs them on lanes, and watches them.

This package imports lanes and appliers. A worker starts one host for each instance that it serves.
"""
