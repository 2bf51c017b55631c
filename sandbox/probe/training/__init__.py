"""Writes down how a program trains, for a diagnosis: `training-<pid>.jsonl` beside the traces.

Copied into the sandbox as the package `_reprise_training`; `sitecustomize.py` arms it when
`REPRISE_TRAINING` is set. It imports nothing but the standard library and nothing of ours, and
looks at a framework only once the program has imported it. It writes facts and judges nothing; the
host reads them as `bot/kernel/training_types.py`, and of all its files only `vocabulary.py`.
"""
