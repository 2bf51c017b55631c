"""Training programs with one known fault each: small families, DeepCrime's operators, killing."""
