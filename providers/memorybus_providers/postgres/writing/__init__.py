"""What is written: said, kept, judged and corrected, in the lane's transaction."""
