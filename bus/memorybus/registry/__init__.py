"""Who is there: provider instances, workers, lanes, tools and homes, as Redis holds them.

It reads and writes those records and decides nothing about their use. Workers register
themselves, and commands read and change what is registered.
"""
