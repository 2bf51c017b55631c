"""The repository under test: its clone and its history."""
