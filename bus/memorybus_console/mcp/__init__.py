"""Memory for the hosts of models, by the Model Context Protocol."""
