"""What is to be looked at."""
