"""Makes a worker known to the others: it shows that it lives and takes its share of the lanes."""
