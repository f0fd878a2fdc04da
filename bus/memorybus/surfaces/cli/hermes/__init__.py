"""``memorybus hermes``: the plugin, its health, and what Hermes had before."""
