"""Workers as processes: how a worker is put together, how it ends, and who supervises several."""
