"""Writes down how a program trains, for a diagnosis: `training-<pid>.jsonl` beside the traces.

Copied into the sandbox as the package `_reprise_training` and imported by `sitecustomize.py` when
`REPRISE_TRAINING` is set; imports nothing but the standard library and nothing of ours, and looks
at a framework only once the program has imported it. It writes facts and judges nothing; the host
reads them as `bot/models/training.py`.
"""

from .imports import arm

__all__ = ["arm"]
