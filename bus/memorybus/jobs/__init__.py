"""The client's side of RQ jobs other than recalls, and the wait for a reply."""
