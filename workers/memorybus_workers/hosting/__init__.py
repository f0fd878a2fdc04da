"""Provider instances at work in a worker: made, declared, run on their lanes, and watched over.

Lanes and appliers enter. A worker starts one host for each instance that it serves.
"""
