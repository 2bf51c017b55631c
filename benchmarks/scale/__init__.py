"""What the App itself costs a run, and how many runs more workers take."""
