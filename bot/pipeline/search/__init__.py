"""The search for a program that fails as reported."""
