"""Makes provider instances in a worker, registers them, runs them on lanes, and watches them."""
