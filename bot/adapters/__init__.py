"""The only place with network clients and subprocesses outside the sandbox."""
