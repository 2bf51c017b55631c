"""Diagnoses a training program and repairs it.

`diagnose.py` runs it once with the recorder (`sandbox/probe/training/`), `diagnosis/` says what is
wrong from the trace alone, `program/` finds and rewrites hyperparameters in its text, and `repair/`
searches for the smallest patch and proves it.
"""
