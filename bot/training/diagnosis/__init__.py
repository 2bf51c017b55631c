"""Says why a training run learns badly, from its trace alone: one row a rule."""
