"""The App at work: what happens between a stored delivery and the comment on GitHub.

`handlers/webhook.py` verifies and stores a delivery and offers it to the queue. `worker.py`
takes it and hands it to `deliveries.py`, which decides once (`requests.py` admits the run) and
offers the run to the same queue. The worker takes that too: `execute_run.py` holds its lease
and calls the engine through `factory.py`, and `publish.py` writes the comment, the label and
the reaction.
"""
