"""Preprocessing: the arrays that a program trains and tests with, and how they are scaled."""
