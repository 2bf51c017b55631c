"""`python -m benchmarks NAME`: one command for each benchmark."""

from benchmarks.commands import app

app(prog_name="python -m benchmarks")
