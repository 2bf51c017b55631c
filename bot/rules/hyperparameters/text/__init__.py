"""A program as a tree that keeps its formatting: what stands where, and how it is written anew."""
