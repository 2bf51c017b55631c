"""Queues behind the port: one within a process, one on Redis."""
