"""How Redis is reached: keys, Lua scripts with typed wrappers, connections and clusters.

Settings and the words of the contract enter; no module here knows what the keys mean to the
parts above. Only store modules use it.
"""
