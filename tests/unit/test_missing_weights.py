"""A program of a repository keeps its random weights, where nobody has the trained ones."""

import pytest

from bot.issues.reading.issue import read_issue
from bot.issues.search.missing_weights import may_be_left_out, without_weights
from bot.issues.signature.freeze import freeze
from bot.kernel.attempt import Failure, Script
from bot.kernel.bug import Frame, Issue, members_of

PLAIN = "model.load_state_dict(\n    torch.load(path), strict=True)\n"
NAMED = """state = torch.load(path)
model = Net()
if model:
    model.load_state_dict(state["model"])
    net.ema.load_state_dict(state["ema"])
"""


def fixed_lines(source: str, line: int) -> list[str]:
    source = f"def main():\n{''.join('    ' + row for row in source.splitlines(keepends=True))}"
    tree = {"lib/main.py": source.encode()}
    script = Script(files={"run.py": ""}, entry="run.py", command=("run.py",))
    frames = (
        Frame(path="/repro/run.py", line=1, function="<module>", code="main()"),
        Frame(path="/repro/lib/main.py", line=line, function="main", code="x"),
        Frame(path="/e/torch/serialization.py", package="torch", line=9, function="load", code="x"),
    )
    failure = Failure(exception="FileNotFoundError", message="x", frames=frames)
    fixed = without_weights(script, tree, failure)
    if fixed is script:
        return []
    assert fixed.edited == ("lib/main.py",)
    return [row.strip() for row in fixed.files["lib/main.py"].splitlines()[1:]]


@pytest.mark.parametrize(
    ("source", "line", "lines"),
    [
        (PLAIN, 2, ["pass", ""]),
        (NAMED, 2, ["pass", "model = Net()", "if model:", "pass", "pass"]),
        ("net = resnet(10, pretrained=args.p)\n", 2, ["net = resnet(10, pretrained=False)"]),
        ("net = resnet(weights=W.BEST, x=1)\n", 2, ["net = resnet(weights=None, x=1)"]),
        (
            "net = models.segmentation.fcn_resnet50(num_classes=4)\n",
            2,
            ["net = models.segmentation.fcn_resnet50(num_classes=4, weights_backbone=None)"],
        ),
        ("net = ssd300_vgg16(weights_backbone=None)\n", 2, []),
        (f"{NAMED}print(state['epoch'])\n", 2, []),
        ("rows = json.load(file)\nprint(rows)\n", 2, []),
        ("net = resnet(pretrained=False)\n", 2, []),
        ("x = open(path)\n", 2, []),
        ("x = np.load(path)\n", 2, []),
    ],
)
def test_what_loads_weights_is_left_out_and_nothing_else(
    source: str, line: int, lines: list[str]
) -> None:
    assert fixed_lines(source, line) == lines


def test_a_model_of_a_hub_is_made_at_random() -> None:
    source = "from transformers import BertModel\nnet = BertModel.from_pretrained('acme/bert')\n"
    _, line = fixed_lines(source, 3)
    assert "from_pretrained" not in line
    assert line.startswith("net = BertModel(")


@pytest.mark.parametrize(
    ("code", "error", "may"),
    [
        ("images = it.next()", "AttributeError: no attribute 'next'", True),
        ("model.load_state_dict(x)", "AttributeError: no attribute 'next'", False),
        ("go()", "RuntimeError: Error(s) in loading state_dict for Net", False),
        ("go()", "FileNotFoundError: [Errno 2] No such file or directory: 'x'", False),
    ],
)
def test_a_failure_of_loading_needs_the_weights(code: str, error: str, may: bool) -> None:
    body = f'```\nTraceback (most recent call last):\n  File "a.py", line 1, in <module>\n    {code}\n{error}\n```\n'
    bug = read_issue(Issue(title="It fails", body=body))
    signature = freeze(bug)
    assert signature is not None
    assert may_be_left_out(bug, members_of(signature)) is may
