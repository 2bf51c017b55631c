"""A diagnoser that learns from traces of known faults, compared with the rules."""
