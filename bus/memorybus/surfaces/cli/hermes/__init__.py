"""``memorybus hermes``: the plugin, its status, and the providers that Hermes had before."""
