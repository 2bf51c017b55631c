"""Text from outside is parsed within bounds, and what walks its tree does not run out of stack."""

import ast
import subprocess
import sys
import time

import pytest

from bot.environment import imports
from bot.issues.judge import judge
from bot.issues.observe import observe
from bot.issues.reduce import edits
from bot.kernel.attempt import Script
from bot.kernel.bug import CrashSignature
from bot.kernel.source import symbols, syntax
from sandbox.port import RunResult

HOSTILE = {
    "brackets": "(" * 50_000,
    "signs": "x = " + "-" * 5_000 + "1",
    "a long sum": "x = " + "+".join(["a"] * 3_000),
    "a long chain": "x = a" + ".b" * 20_000,
    "nested calls": "f(" * 190 + ")" * 190,
    "nested blocks": "\n".join(" " * n + "if x:" for n in range(95)) + "\n" + " " * 95 + "pass",
    "many elifs": "if a: pass\n" + "elif a: pass\n" * 2_000,
    "a null byte": "x = 1\0",
    "half a surrogate": "x = '\ud800'",
    "a huge number": "x = " + "9" * 5_000,
    "too long": "x = 1\n" * 400_000,
    "too many names": "a\n" * 700_000,
    "too many items": f"[{'1,' * 700_000}]",
}


@pytest.fixture(scope="module")
def largest() -> float:
    """CPU seconds that the largest program takes which is read: machines differ in speed."""
    text, began = "x = 1\n" * (syntax.MAX_TOKENS // 4 - 100), time.process_time()
    syntax.parse(text)
    return time.process_time() - began


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_text_is_unreadable_and_never_a_defect(what, largest):
    text, began = HOSTILE[what], time.process_time()
    try:
        tree = syntax.parse(text)
    except SyntaxError:
        tree = None
    for read in (syntax.tree_of, syntax.pasted_tree, syntax.attempt):
        read(text)
    assert isinstance(syntax.module_of(text), ast.Module)
    symbols.imported_modules(text)
    imports.undefined(text)
    edits.valid("a.py", text)
    script = Script(files={"repro.py": text})
    seen = observe(RunResult(exit_code=1, stderr="Traceback (most recent call last):\nE: m\n"))
    judge(seen, CrashSignature(exception="E", message="m"), script)
    if tree is not None:
        assert ast.unparse(tree)
    assert time.process_time() - began < 40 * largest


def test_the_deepest_tree_that_is_read_can_be_written_out():
    width = syntax.DEEPEST - 6
    assert ast.unparse(syntax.parse("x = " + "-" * width + "a"))
    with pytest.raises(syntax.Unreadable, match="nested too deeply"):
        syntax.parse("x = " + "-" * (width + 10) + "a")


WORST = """
import resource, sys
from bot.kernel import artifacts
from bot.kernel.source import syntax as parsing
parsing.parse_concrete("a = 1")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
exec(sys.argv[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize(
    "reading",
    [
        "parsing.parse('a\\n' * parsing.MAX_TOKENS)",
        "parsing.parse('(' + 'a,' * (parsing.MAX_TOKENS // 2 - 2) + ')')",
        "parsing.parse_concrete('a\\n' * parsing.MAX_CONCRETE_TOKENS)",
        """artifacts.last_row('{"a":[' + '[],' * 349_000 + '[]]}')""",
        """artifacts.parse_record(artifacts.Trace, b'{"error":{"frames":[' + b'{},' * 349_000 + b'{}]}}')""",
    ],
)
def test_the_largest_that_is_read_takes_a_known_amount_of_memory(reading):
    read = subprocess.run(
        [sys.executable, "-c", WORST, reading], capture_output=True, text=True, check=True
    )
    assert int(read.stdout) < 400_000


def test_a_real_program_of_the_longest_kind_is_read():
    line = "    self.encoder = nn.Linear(config.hidden_size, 2)  # (a, b, c), as in (d, e)\n"
    text = "def build(self, config):\n" + line * 9000
    assert syntax.parse(text)
    with pytest.raises(syntax.Unreadable, match="more than 150000 tokens"):
        syntax.parse(text * 2)
