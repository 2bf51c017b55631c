"""Which programs can confirm a bug by failing in one version and passing in another."""

import pytest

from bot.issues.signature.data_flow import doubt

HONEST = {
    "prints a version": "import torch\nprint(torch.__version__)\ntorch.f()",
    "prints several": "import sys, torch\nprint('Python', sys.version)\nprint(f'torch {torch.__version__}')",
    "keeps a version to print it": "import torch\nv = torch.__version__\nprint('torch ' + v)\nprint('%s' % v)",
    "shortens it": "import torch\nprint(torch.__version__.split('+')[0], torch.__version__[:3])",
    "logs it": "import logging, torch\nlogging.info('torch %s', torch.__version__)",
    "lists versions": "import torch, numpy\nfound = {'torch': torch.__version__, 'numpy': numpy.__version__}\nprint(found)",
    "metadata shown": "from importlib.metadata import version\nprint(version('torch'))",
    "shown by a function of its own": "import torch\ndef show(text): print('version', text)\nshow(torch.__version__)",
    "returned by a function of its own": "import torch\ndef get(): return torch.__version__\nprint(get())",
    "platform": "import platform\nprint(platform.python_version())",
    "branches on values": "import torch\nx = torch.f()\nif x.sum() > 1: raise ValueError(x)",
    "compiles a model": "import re, torch\nmodel = torch.compile(m)\nre.compile('x')\nmodel.eval()",
    "main guard": "import torch\nprint(torch.__version__)\nif __name__ == '__main__':\n    torch.f()",
    "exits": "import sys\ntry:\n    lib.fit()\nexcept Exception as e:\n    print(e)\n    sys.exit(1)",
    "a library's compile": "from torch import compile\nmodel = compile(m)",
    "a literal exec": "exec('import lib; lib.fit()')",
    "evaluates": "import lib\nlib.DataFrame().eval('a + b')",
    "a version of the program's own data": "data = {'version': 2}\nif data['version'] > 1: print(1)",
}  # fmt: skip
DOUBTFUL = {
    "branches": "import lib\nif lib.__version__ < '2': lib.bad()",
    "branches on a kept version": "import lib\nv = lib.__version__\nw = v.split('.')\nif w[0] == '1': lib.bad()",
    "one-line choice": "import lib\n(lib.bad if lib.__version__ == '1' else lib.good)()",
    "a comparison as an index": "import lib\n[lib.good, lib.bad][lib.__version__ < '2']()",
    "a table": "import lib\n{'1.0': lib.bad, '2.0': lib.good}[lib.__version__]()",
    "metadata": "from importlib.metadata import version as v\nif v('lib') == '1.0': bad()",
    "metadata by module": "import importlib.metadata as m\nif m.version('lib') == '1.0': bad()",
    "pkg_resources": "import pkg_resources\nif pkg_resources.get_distribution('lib').version == '1': bad()",
    "python": "import sys\nif sys.version_info < (3, 9): bad()",
    "python's name": "from sys import version_info as v\nassert v >= (3, 9)",
    "platform": "import platform\nif platform.python_version().startswith('3.8'): bad()",
    "a loop": "import lib\nfor _ in range(int(lib.__version__[0])): bad()",
    "arithmetic": "import lib\nx = 1 / (int(lib.__version__[0]) - 1)",
    "an argument": "import lib\nlib.fit(lib.__version__)",
    "its own function branches": "import lib\ndef old(v): return v < '2'\nif old(lib.__version__): bad()",
    "a function returns it": "import lib\ndef get(): return lib.__version__\nif get() < '2': bad()",
    "a walrus": "import lib\nprint(v := lib.__version__)\nwhile v == '1': bad()",
    "getattr": "import lib\nif getattr(lib, '__version__') == '1': bad()",
    "computed exec": "import lib\nexec('b' + 'ad()')",
    "exec by version": "import lib\nexec(lib.__version__ and 'bad()')",
    "a literal exec that branches": "exec(\"import lib\\nif lib.__version__ < '2': bad()\")",
    "foreign name": "exec(compile('raise E', '/e/site-packages/lib/core.py', 'exec'))",
    "a file's name": "code = compile('raise E', path, 'exec')",
    "loads a file": "import importlib.util\ns = importlib.util.spec_from_file_location('lib', 'x.py')",
    "exec by another name": "run = exec\nrun('x')",
    "leaves by getattr": "import os\ngetattr(os, '_exit')(1)",
    "leaves": "import os\nos._exit(1)",
    "leaves by another name": "from os import _exit as leave\nleave(1)",
    "replaces itself": "import os, sys\nos.execv(sys.executable, ['python'])",
    "the hook": "import sys\nsys.excepthook(E, e, tb)",
    "a forged traceback": "raise e.with_traceback(tb)",
    "another code object": "f.__code__ = f.__code__.replace(co_filename='x')\ng = f.__code__.co_filename",
    "its own memory": "open('/proc/self/environ')",
    "the probe": "import sitecustomize\nx = open('.repr' 'ise/trace')",
    "ctypes": "import ctypes\nctypes.CDLL(None)._exit(1)",
    "gc": "import gc\ngc.get_objects()",
    "no program": "this is no program",
}  # fmt: skip


@pytest.mark.parametrize("what", HONEST)
def test_an_honest_program_can_confirm(what):
    assert doubt({"repro.py": HONEST[what]}) == ""


@pytest.mark.parametrize("what", DOUBTFUL)
def test_a_program_that_may_make_the_difference_itself_cannot(what):
    assert doubt({"repro.py": "print('ok')\n", "other.py": DOUBTFUL[what]})
