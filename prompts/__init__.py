"""The voice: one folder a stage, one immutable file a version."""
