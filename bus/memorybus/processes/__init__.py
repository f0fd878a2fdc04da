"""Our child processes, the keeper that starts them again, and the signals that end them."""
