"""Objects, methods and variables taken apart: what each edit makes of a program, and that it is
offered only where it may hold.
"""

import contextlib
import io

import pytest

from bot.issues.reduce import expressions, inline
from bot.issues.reduce.edits import apply_reductions


def offered(source):
    """What is proposed for a program, by the words for it."""
    files = {"r.py": source}
    found = {}
    for edit in (*inline.inline_edits(files, "r.py"), *expressions.edits(files)):
        made = apply_reductions(files, [edit])
        if made is not None:
            found.setdefault(edit.what, made["r.py"])
    return found


def printed(source):
    """What a program prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "r.py", "exec"), {"__name__": "__main__"})
    return out.getvalue()


TABLE = """class Table:
    def __init__(self, rows, more=2):
        self.rows = rows
        self.more = more

    def pick(self, at):
        row = self.rows[at]
        return row + self.more


table = Table([4, 5])
print(table.pick(1))
"""
MODEL = """class Base:
    def __init__(self, size=1):
        self.size = size


class Net(Base):
    def __init__(self, width):
        super().__init__(width + 1)
        self.width = width

    def __call__(self, x):
        y = x * self.width
        return y + self.size


net = Net(3)
print(net(2) + 1)
"""
POINT = """from typing import NamedTuple
class P(NamedTuple):
    x: int
    y: int = 7
def f(p):
    return p.y
q = P(x=P(1, 2).x)
print(f(q), q.x)
"""
MADE = """    def __init__(self, width):
        super().__init__(width + 1)
        self.width = width
"""
CALLED = """    def __call__(self, x):
        y = x * self.width
        return y + self.size
"""


@pytest.mark.parametrize(
    ("source", "what", "after"),
    [
        (
            TABLE,
            "Table.pick in its caller",
            """class Table:
    def __init__(self, rows, more=2):
        self.rows = rows
        self.more = more



table = Table([4, 5])
row = table.rows[1]
print((row + table.more))
""",
        ),
        (
            TABLE,
            "Table set from outside",
            """class Table:

    def pick(self, at):
        row = self.rows[at]
        return row + self.more


rows = [4, 5]
table = Table()
table.rows = rows
table.more = 2
print(table.pick(1))
""",
        ),
        (
            MODEL,
            "Net.__call__ in its caller",
            MODEL.replace(CALLED, "").replace(
                "print(net(2) + 1)", ("y = 2 * net.width\nprint((y + net.size) + 1)")
            ),
        ),
        (
            MODEL,
            "Net set from outside",
            MODEL.replace(MADE, "").replace("net = Net(3)", ("net = Net(3 + 1)\nnet.width = 3")),
        ),
        (
            (
                "class A:\n"
                "    def half(self, x):\n"
                "        return x / self.by\n\n"
                "a = A()\n"
                "a.by = 2\n"
                "print([a.half(i + 1) for i in range(2)])\n"
            ),
            "half by its expression",
            (
                "class A:\n"
                "    pass\n\n"
                "a = A()\n"
                "a.by = 2\n"
                "print([((i + 1) / a.by) for i in range(2)])\n"
            ),
        ),
        (
            ("class A(list):\n    pass\nprint(A((1,)), A())\n"),
            "list for A",
            "print(list((1,)), list())\n",
        ),
        (
            (
                "from dataclasses import dataclass\n"
                "@dataclass\n"
                "class C:\n"
                "    x: int\n"
                "    y: int = 3\n"
                "c = C(len('a'))\n"
                "x = c.x\n"
                "print(c.y, x)\n"
            ),
            "c as variables",
            "from dataclasses import dataclass\nc_x = len('a')\ny = 3\nx = c_x\nprint(y, x)\n",
        ),
        (
            "class C:\n    pass\na = C()\nb = C()\na.n = 1\nb.n = a.n + 1\nprint(b.n)\n",
            "b as variables",
            "class C:\n    pass\na = C()\na.n = 1\nb_n = a.n + 1\nprint(b_n)\n",
        ),
        (
            POINT,
            "P as tuples",
            (
                "from typing import NamedTuple\n"
                "def f(p):\n"
                "    return p[1]\n"
                "q = ((1, 2)[0], 7)\n"
                "print(f(q), q[0])\n"
            ),
        ),
        (
            ("def f():\n    a = [1]\n    b = a\n    b.append(2)\n    return b\nprint(f())\n"),
            "b in its place",
            "def f():\n    a = [1]\n    a.append(2)\n    return a\nprint(f())\n",
        ),
        ("a = 1 + 1\nprint(a * 2)\n", "a in its place", "print((1 + 1) * 2)\n"),
        (
            ("a, b = (len('x'), len('xy'))\nprint(b - a)\n"),
            "a in its place",
            "print(len('xy') - len('x'))\n",
        ),
        (
            (
                "import io, pickle\n"
                "out = io.BytesIO()\n"
                "pickle.dump({'a': 1}, out)\n"
                "out.seek(0)\n"
                "print(pickle.load(out)['a'])\n"
            ),
            "what was saved",
            (
                "import io, pickle\n"
                "out = io.BytesIO()\n"
                "pickle.dump({'a': 1}, out)\n"
                "out.seek(0)\n"
                "print({'a': 1}['a'])\n"
            ),
        ),
        (
            ("def f(a, b):\n    c = a - b\n    return c\nfor i in range(f(3, 1)):\n    print(i)\n"),
            "f in its caller",
            "c = 3 - 1\nfor i in range(c):\n    print(i)\n",
        ),
    ],
)
def test_what_is_put_in_its_place_says_the_same(source, what, after):
    made = offered(source)[what]
    assert made == after
    assert printed(made) == printed(source)


@pytest.mark.parametrize(
    ("source", "chosen"),
    [("print({'a': 1, 'b': f(2)}['b'])\n", "print(f(2))\n"), ("x = (f(1), 2)[0]\n", "x = f(1)\n")],
)
def test_what_is_chosen_from_what_is_written_down_keeps_the_value(source, chosen):
    plain = [edit for edit in expressions.edits({"r.py": source}) if not edit.alters_values]
    assert chosen in [apply_reductions({"r.py": source}, [edit])["r.py"] for edit in plain]


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (
            TABLE.replace(
                "print(",
                "again = table.pick(0)\nagain = table.pick(0)\nagain = table.pick(0)\nprint(",
            ),
            "Table.pick in its caller",
        ),
        (TABLE.replace("print(", "print(Table, "), "Table set from outside"),
        (
            (
                "class A:\n"
                "    x = 1\n"
                "    def f(self):\n"
                "        if self.x:\n"
                "            return 1\n"
                "        return 2\n"
                "a = A()\n"
                "a.f()\n"
            ),
            "A.f in its caller",
        ),
        (
            "class A:\n    def f(self):\n        self.n = 1\na = A()\nb = [a.f() for _ in 'ab']\n",
            "A.f in its caller",
        ),
        ("class C:\n    pass\nc = C()\nc.n = 1\nprint(c)\n", "c as variables"),
        ("class C:\n    n = 1\nc = C()\nprint(c.n)\n", "c as variables"),
        (
            (
                "from typing import NamedTuple\n"
                "class P(NamedTuple):\n"
                "    x: int\n"
                "print(isinstance(P(1), P))\n"
            ),
            "P as tuples",
        ),
        ("a = 1\na = 2\nprint(a)\n", "a in its place"),
        ("a = len('a')\nprint(f'{a}')\n", "a in its place"),
        ("def f():\n    global a\n    a = len('a')\nf()\nprint(a)\n", "a in its place"),
        (
            f"a = [{', '.join(map(str, range(30)))}]\nprint(len(a) + len('{'x' * 30}'))\n",
            "a in its place",
        ),
    ],
)
def test_what_would_not_hold_is_not_offered(source, what):
    printed(source)
    assert what not in offered(source)


def test_a_value_that_is_computed_at_another_time_is_no_edit_where_values_must_stay():
    source = "a = f()\ng()\nh(a)\nb = f()\nh(b)\nc = b\nk(c)\nk(c)\n"
    alters = {
        edit.what: edit.alters_values for edit in inline.inline_edits({"r.py": source}, "r.py")
    }
    assert (alters["a in its place"], alters["c in its place"]) == (True, False)
