"""Programs that forge the reported failure, in real sandboxes: what the host takes for a library's
exception, and what it says of the run.
"""

import base64
import hashlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.issues import judge, observe
from bot.issues.signature.data_flow import doubt
from bot.kernel import launch
from bot.kernel.attempt import Match, Script
from bot.kernel.bug import CrashSignature, Place
from bot.kernel.environment import Environment
from tests.contract.conftest import bench_of
from tests.support.jobs import job_options

MESSAGE = "the two halves do not fit together at all"
CORE = f"""class FitError(RuntimeError): pass

def fit(x):
    return inner(x)

def inner(x):
    raise FitError({MESSAGE!r})
"""
WANTED = CrashSignature(
    exception="FitError",
    message=MESSAGE,
    frame="lib/core.py",
    function="inner",
    places=(
        Place(file="lib/core.py", function="fit", line=4, code="return inner(x)"),
        Place(file="lib/core.py", function="inner", line=7, code=f"raise FitError({MESSAGE!r})"),
    ),
)
RAISED = f"raise FitError({MESSAGE!r})"
FRAMES = f"""[
  {{'path': lib.core.__file__, 'line': 4, 'function': 'fit', 'code': 'return inner(x)'}},
  {{'path': lib.core.__file__, 'line': 7, 'function': 'inner', 'code': {RAISED!r}}}]"""
ROW = f"""{{'pid': os.getpid(), 'main': True, 'where': 'main', 'error': {{'exception': 'FitError',
  'message': {MESSAGE!r}, 'bases': ['RuntimeError'], 'frames': {FRAMES}}}}}"""
HONEST = "import lib\nprint('lib', lib.__version__)\nlib.fit(1)\n"
FORGED = {
    "a trace of its own, and out": f"""import json, lib, os
json.dump({ROW}, open('.reprise/trace-%d-main.json' % os.getpid(), 'w'))
os._exit(1)""",
    "a trace of its own, then an error": f"""import json, lib, os
json.dump({ROW}, open('.reprise/trace-%d-main.json' % os.getpid(), 'w'))
raise SystemExit(1)""",
    "a trace of a child that never was": f"""import json, lib, os
row = {ROW}; row.update(main=False, pid=7)
json.dump(row, open('.reprise/trace-7-main.json', 'w'))
raise SystemExit(1)""",
    "code under the library's name": f"""import lib
exec(compile('\\n' * 20 + 'def inner(x):\\n    raise lib.FitError({MESSAGE!r})\\ndef fit(x): inner(x)\\nfit(1)', lib.core.__file__, 'exec'))""",
    "a namesake beside the program": f"""import os, sys
os.makedirs('site-packages/lib')
open('site-packages/lib/__init__.py', 'w').write('')
open('site-packages/lib/core.py', 'w').write({CORE!r})
sys.path.insert(0, os.path.abspath('site-packages'))
import lib.core
lib.core.fit(1)""",
    "a true traceback, printed, and out": """import lib, os, traceback
try: lib.fit(1)
except RuntimeError: traceback.print_exc()
os._exit(1)""",
    "the rest of another exception": f"""import atexit, glob, json, lib, os
def forge():
    for path in glob.glob('.reprise/trace-*'):
        os.remove(path); json.dump({ROW}, open(path, 'w'))
atexit.register(forge)
raise KeyError(1)""",
}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with an installed library, readable by every user."""
    with tempfile.TemporaryDirectory(prefix="reprise-forged-") as folder:
        site = Path(folder) / "lib" / "python3.11" / "site-packages"
        (site / "lib").mkdir(parents=True)
        (site / "lib" / "__init__.py").write_text(
            "from lib import core\nfrom lib.core import FitError, fit\n__version__ = '1.0'\n"
        )
        (site / "lib" / "core.py").write_text(CORE)
        info = site / "lib-1.0.dist-info"
        info.mkdir()
        made = base64.urlsafe_b64encode(hashlib.sha256(CORE.encode()).digest()).decode()
        (info / "RECORD").write_text(f"lib/core.py,sha256={made.rstrip('=')},{len(CORE)}\n")
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        yield Path(folder)


@pytest.fixture(scope="module")
def free(interpreter):
    """The sandbox in which a program can do the most. What the host reads of it is the same in all:
    the tests of what is honest and of the key have each.
    """
    return bench_of("process", interpreter)


def judged(real, place, source, entry="repro.py"):
    environment = Environment(
        id="e",
        python="3.11",
        interpreter=str(real.home / "bin" / "python"),
        mounts=(str(real.home), str(place)),
        variables={
            "PYTHONPATH": str(place / "lib" / "python3.11" / "site-packages"),
            "LD_LIBRARY_PATH": str(real.home / "lib"),
        },
    )
    script = Script(files={entry: source})
    spec = launch.spec(script, environment, job_options(timeout_s=30), WANTED, 1, "forged")
    result = real.sandbox.run(spec)
    seen = observe.observe(result, key=spec.files[launch.KEY], mounts=environment.mounts)
    return judge.judge(seen, WANTED, script), result


def test_an_honest_failure_is_above_doubt(real, place):
    judgement, result = judged(real, place, HONEST)
    assert judgement.match is Match.MATCHED, (judgement, result)
    assert judgement.doubt == ""
    assert doubt({"repro.py": HONEST}) == ""
    assert "lib 1.0" in result.stdout


@pytest.mark.parametrize("source", ["print('done')", "import lib\ntry: lib.fit(1)\nexcept Exception: pass", "raise SystemExit(3)", "import os\nif os.fork() == 0: os._exit(0)\nos.wait()"])  # fmt: skip
def test_an_honest_end_is_above_doubt(free, place, source):
    assert judged(free, place, source)[0].doubt == ""


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_failure_is_no_match_or_in_doubt(free, place, what):
    judgement, result = judged(free, place, FORGED[what])
    assert judgement.match is not Match.MATCHED or judgement.doubt, (judgement, result)


def test_a_clean_end_that_skips_pythons_own_is_in_doubt(free, place):
    judgement, _ = judged(free, place, "import os\nprint('done', flush=True)\nos._exit(0)")
    assert (judgement.match, bool(judgement.doubt)) == (Match.PASSED, True)


def test_the_key_is_gone_before_the_program_starts(real, place):
    source = "import os, sys\nprint(sorted(os.listdir('.reprise')), [v for v in os.environ.values() if len(v) == 32 and v.isalnum()])"
    _, result = judged(real, place, source)
    assert result.stdout == "['_reprise_trace.py', 'sitecustomize.py'] []\n"


def test_a_file_that_is_not_as_its_wheel_brought_it_is_in_doubt(free, place):
    core = next(place.rglob("core.py"))
    core.write_text(CORE.replace("return inner(x)", "return inner(x)  # mended"))
    judgement, _ = judged(free, place, HONEST)
    assert "changed after its installation" in judgement.doubt
