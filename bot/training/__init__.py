"""Diagnoses a training program and repairs it: run it once with the recorder, say what is
wrong, prove a patch.
"""
