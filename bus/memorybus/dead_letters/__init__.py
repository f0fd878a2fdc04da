"""What a provider refused for good, and what operators ask to be done with it (G6).

It reads records and writes requests; only a lane's owner carries them out. Workers and
`memorybus dlq` use it.
"""
