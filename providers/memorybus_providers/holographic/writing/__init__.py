"""What is written into the file: said, kept, judged and corrected, in the lane's transaction."""
