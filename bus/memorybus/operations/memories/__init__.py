"""What is remembered of whom: looked through, put right and taken back.

Nothing here changes a provider by hand: what is put right or taken back is an event like any other.
"""
