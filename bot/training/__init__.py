"""Diagnoses a training program and repairs it.

`diagnose.py` runs it once with the recorder (`sandbox/probe/training/`), `diagnosis/` says what is
wrong from the trace alone, and `repair/` searches for the smallest patch of its hyperparameters
(`bot/program/`) and proves it.
"""
