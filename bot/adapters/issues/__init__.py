"""Issues for the command line: from GitHub, a saved file, or the bundled example."""
