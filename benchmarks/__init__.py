"""Measures Reprise against work whose answer is known; nothing else in the house reads an answer
key.
"""
