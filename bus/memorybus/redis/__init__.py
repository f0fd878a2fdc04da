"""Access to Redis: keys, Lua scripts with typed functions, connections and clusters."""
