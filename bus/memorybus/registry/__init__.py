"""Provider instances, workers, lanes, tools and homes: their records, most of which Redis holds."""
