"""The types that are the contract between files: frozen values without I/O."""
