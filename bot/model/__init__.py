"""Language models: any OpenAI-compatible endpoint, recorded exchanges in its place, and the
cost of calls.
"""
