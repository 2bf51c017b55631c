"""What all products share: one way to run a job of any kind."""
