"""The log in Redis: a stream per partition, its entries, its producers, and whether it is whole."""
