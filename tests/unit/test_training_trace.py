"""What the training probe left is read within limits, whatever lies in the file."""

import json

from bot.kernel import training_trace, training_trace as trace
from sandbox.port import RunResult

NAME = "/repro/.reprise/training-7.jsonl"


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def step(number, **fields):
    return {"kind": "step", "step": number, **fields}


def summary(**fields):
    return {"shape": [4, 2], "dtype": "float32", **fields}


def loss(**fields):
    return {
        "kind": "loss", "model": "m", "name": "mse", "predictions": summary(), "targets": summary(),
        **fields,
    }  # fmt: skip


def test_records_are_sorted_by_kind_and_infinities_survive():
    data = lines(
        {"kind": "start", "pid": 7, "frameworks": {"torch": "2"}},
        step(0, loss="NaN"),
        step(1, loss="Infinity", rate=0.1),
        {"kind": "end", "steps": 2, "seconds": 1.5},
    )
    read = trace.read_trace({NAME: data})
    assert read.start.pid == 7
    assert str(read.steps[0].loss) == "nan"
    assert read.steps[1].loss == float("inf")
    assert (read.end.steps, read.dropped) == (2, 0)


def test_fields_that_only_an_earlier_probe_wrote_are_left_out():
    layer = {"index": 0, "name": "a", "type": "Dense", "initializer": "Zeros"}
    model = {"kind": "model", "id": "m", "framework": "keras", "layers": [layer]}
    read = trace.read_trace(
        {NAME: lines(model, {"kind": "plan", "epochs": 3, "early_stopping": True})}
    )
    assert (read.models[0].layers[0].type, read.plans[0].epochs, read.dropped) == ("Dense", 3, 0)


def test_a_file_that_was_cut_off_in_a_line_keeps_the_lines_before():
    read = trace.read_trace({NAME: lines(step(0), step(1)) + b'{"kind": "step", "st'})
    assert [one.step for one in read.steps] == [0, 1]
    assert read.dropped == 1
    assert read.end is None


def test_what_is_written_again_counts_once():
    read = trace.read_trace({NAME: lines(loss(trivial=1.0), loss(name="mae"), loss(trivial=2.0))})
    assert [(one.name, one.trivial) for one in read.losses] == [("mse", 2.0), ("mae", None)]


def test_the_process_that_trained_most_is_chosen():
    other = {"/repro/.reprise/training-9.jsonl": lines(step(0), step(1), step(2))}
    assert len(trace.read_trace({NAME: lines(step(0)), **other}).steps) == 3
    assert trace.read_trace({"/repro/training.txt": lines(step(0))}).steps == ()
    assert trace.read_trace({}).steps == ()


def test_lines_that_are_no_record_are_counted_and_left_out():
    hostile = [
        b"not json",
        b"[" * 100_000,
        b'{"kind": "step", "step": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"kind": "verdict", "step": 1}',
        b'{"kind": "step", "step": -1}',
        b'{"kind": "step", "step": 1e400}',
        b'{"kind": "step", "step": ' + b"9" * 5000 + b"}",
        b'{"kind": "step", "step": 99999999999999}',
        b'{"kind": "step", "step": 1, "more": 2}',
        b'{"kind": "step", "step": 1, "optimizer": "' + b"a" * 5000 + b'"}',
        b'{"kind": "step", "step": 1, "optimizer": "' + b"\\" * 5000 + b'"}',
        b"\xff\xfe\x00",
        b"x" * (2 << 20),
        lines(step(1, weights=[{"layer": 0, "role": "kernel"}] * 3000)).strip(),
        lines({"kind": "epoch", "epoch": 0, "step": 1, "values": dict.fromkeys(map(str, range(9000)))}).strip(),
    ]  # fmt: skip
    read = trace.read_trace({NAME: b"\n".join(hostile) + b"\n" + lines(step(5))})
    assert [one.step for one in read.steps] == [5]
    assert read.dropped == len(hostile)


def test_a_file_over_the_limits_is_cut_and_that_is_counted():
    read = trace.read_trace({NAME: lines(*map(step, range(150_000)))})
    assert len(read.steps) == 100_000
    assert read.dropped == 50_000
    models = [
        {"kind": "model", "id": str(n), "framework": "torch", "layers": []} for n in range(3000)
    ]
    assert len(trace.read_trace({NAME: lines(*models)}).models) == 2000


def test_steps_go_on_for_each_optimiser():
    """A second process of the same number, and a forged line, do not train again."""
    other = step(0, optimizer="b")
    read = trace.read_trace(
        {NAME: lines(step(0), other, step(2), step(1), step(2), other, step(3))}
    )
    assert [(one.optimizer, one.step) for one in read.steps] == [
        ("", 0), ("b", 0), ("", 2), ("", 3),
    ]  # fmt: skip
    assert read.dropped == 3


def test_losses_are_heard_while_the_program_runs_and_taken_out_of_its_output():
    heard = []
    listen = training_trace.listener(lambda step, loss: heard.append((step, loss)))
    for line in (
        "warning",
        "\x1ereprise step 12 loss 0.5",
        "more\x1ereprise step 13 loss 0.25",
        "\x1ereprise step 13 loss nan",
        "\x1ereprise step 13 loss 1 of many",
        "\x1e" + "x" * 10_000,
        "\x1ereprise step 14 loss -1e-05",
    ):
        listen("stderr", line)
    listen("stdout", "\x1ereprise step 99 loss 1")
    assert heard == [(12, 0.5), (13, 0.25), (14, -1e-05)]
    result = RunResult(0, stderr="a\x1ereprise step 1 loss 2\nb\n\x1ereprise other\n")
    assert training_trace.without_marks(result).stderr == "ab\n\x1ereprise other\n"
