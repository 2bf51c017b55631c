"""The search for a program that fails as reported: the report's own, and those that a model
writes.
"""
