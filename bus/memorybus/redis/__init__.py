"""How Redis is reached: keys, Lua scripts with typed functions, connections and clusters.

It imports settings and the words of the contract, and does not know what the keys mean to the parts
above. Stores run their commands through it; operations, surfaces and workers open connections.
"""
