"""What to install for a program of that day, where each pin comes from, and how it is built."""
