"""The command line as its users meet it: the real program, its exit codes, its two streams and
its mistakes.
"""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import metadata
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from bot.cli.app import app
from bot.report import schema

COMMAND = [sys.executable, "-c", "from bot.cli.app import app; app()"]
ROOT = str(Path(__file__).parents[2])
TOKEN = "t0ken-of-the-test-0123456789"
FEATURE = "# Support bfloat16\n\nFeature request: it would be great if pooling could support bfloat16. Would it be possible to add it?\n"
SLOW = """# Waiting fails with a ValueError

```python
import time
print("waiting", flush=True)
time.sleep(60)
int("x")
```

```
Traceback (most recent call last):
  File "a.py", line 4, in <module>
    int("x")
ValueError: invalid literal for int() with base 10: 'x'
```
"""


Here = Callable[..., subprocess.CompletedProcess[str]]


def environment(**more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("REPRISE_", "COV_"))
    }
    cache = os.environ.get("REPRISE_CACHE_DIR")
    own = {"REPRISE_CACHE_DIR": cache} if cache else {}
    return {
        **kept,
        **own,
        "PYTHONPATH": ROOT,
        "REPRISE_GITHUB_API_URL": "http://127.0.0.1:9",
        **more,
    }


def reprise(
    tmp_path: Path, *argv: str, stdin: str | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *argv],
        capture_output=True,
        text=True,
        input=stdin,
        cwd=tmp_path,
        env=environment(**more),
        timeout=600,
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """The same command line without a process of its own, for the many mistakes."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("REPRISE_")]:
        monkeypatch.delenv(name)

    def call(*argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        done = CliRunner().invoke(
            app, argv, env={"REPRISE_GITHUB_API_URL": "http://127.0.0.1:9", **more}
        )
        return subprocess.CompletedProcess(argv, done.exit_code, done.stdout, done.stderr)

    return call


def mistake(done: subprocess.CompletedProcess[str], words: str) -> None:
    assert words in done.stderr
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert TOKEN not in done.stderr


def test_version(tmp_path: Path) -> None:
    done = reprise(tmp_path, "--version")
    assert (done.returncode, done.stdout) == (0, f"reprise {metadata.version('reprise')}\n")


def test_schema_prints_the_schema_alone(tmp_path: Path) -> None:
    done = reprise(tmp_path, "schema")
    assert (done.returncode, done.stdout, done.stderr) == (0, schema.text(), "")


def test_a_reader_that_leaves_is_no_defect(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "schema"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_a_verdict_other_than_reproduced_exits_3_and_json_stands_alone(tmp_path: Path) -> None:
    done = reprise(
        tmp_path, "reproduce", "-", "--sandbox", "process", "--json", "--out", "run", stdin=FEATURE
    )
    assert done.returncode == 3
    data = json.loads(done.stdout)
    Draft202012Validator(json.loads(schema.text())).validate(data)
    assert data["verdict"]["kind"] == "not_a_bug"
    assert json.loads((tmp_path / "run" / "report.json").read_text()) == data
    assert "Not a bug report" in (tmp_path / "run" / "report.md").read_text()
    assert "A plain process does not protect: " in done.stderr
    assert "intake: reading the report" in done.stderr


def test_the_human_view_names_the_folder_and_holds_no_escapes(tmp_path: Path) -> None:
    done = reprise(tmp_path, "reproduce", "-", "--sandbox", "process", stdin=FEATURE)
    assert done.returncode == 3
    assert done.stdout.startswith("Not a bug report.\n")
    folder = next((tmp_path / "reprise-runs").iterdir())
    assert folder.name.startswith("support-bfloat16-")
    assert str(folder.relative_to(tmp_path)) in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colour_on_a_terminal_only_when_wanted(
    tmp_path: Path, variables: dict[str, str], coloured: bool
) -> None:
    (tmp_path / "a.md").write_text(FEATURE)
    main, other = pty.openpty()
    env = {
        name: value
        for name, value in environment().items()
        if name not in {"NO_COLOR", "FORCE_COLOR"}
    }
    argv = [*COMMAND, "reproduce", "a.md", "--sandbox", "process"]
    with subprocess.Popen(
        argv,
        stdout=other,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env={**env, "TERM": "xterm", **variables},
    ) as process:
        os.close(other)
        seen = b""
        while chunk := read(main):
            seen += chunk
        process.wait(60)
    os.close(main)
    assert b"Not a bug report" in seen
    assert (b"\x1b[1;33m" in seen) is coloured


def read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""


SOURCES = [
    (["none.md"], "There is no file none.md."),
    (["."], ". is a folder, not an issue."),
    (["run.py"], "run.py is a program, not a bug report."),
    (["broken.json"], "broken.json is not valid JSON (line 1"),
    (["empty.md"], "empty.md is empty."),
    (["acme/pool#1"], "127.0.0.1 cannot be reached"),
    (["https://gitlab.example/a/b/issues/1"], "is not the GitHub host that Reprise uses"),
    (["a.md", "--python", "2.7"], "--python 2.7 is not a Python 3 version."),
    (["a.md", "--python", "3.99"], "Python 3.99 is not installed here"),
    (["a.md", "--with", "torch=1"], "--with torch=1 is not a requirement."),
    (["a.md", "--with", "x @ https://evil.example/x.whl"], "contains a URL."),
    (["a.md", "--with", "x; python_version>'3'"], "contains an environment marker."),
    (["a.md", "--repo", "nowhere"], "--repo nowhere is neither a folder nor a URL."),
    (["a.md", "--repo", "ext::sh -c id"], "is neither a folder nor a URL."),
    (["a.md", "--ref=--upload-pack=id"], "is not a branch, tag or commit."),
    (["a.md", "--ref", "main"], "needs a clone."),
]


@pytest.mark.parametrize(("argv", "words"), SOURCES)
def test_mistakes_are_one_sentence(tmp_path: Path, here: Here, argv: list[str], words: str) -> None:
    (tmp_path / "run.py").write_text("print(1)")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "empty.md").write_text("")
    (tmp_path / "a.md").write_text(FEATURE)
    mistake(here("reproduce", *argv), words)
    assert not (tmp_path / "reprise-runs").exists()


def test_an_out_that_cannot_be_used(tmp_path: Path, here: Here) -> None:
    (tmp_path / "a.md").write_text(FEATURE)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    for out, words in (
        ("a.md/run", "as a folder"),
        ("/proc/no", "/proc/no"),
        ("full", "already contains other files"),
    ):
        done = here("reproduce", "a.md", "--sandbox", "process", "--out", out)
        assert done.returncode == 2
        assert words in done.stderr
        assert "Traceback" not in done.stderr
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]


def test_settings_that_are_wrong(tmp_path: Path, here: Here) -> None:
    (tmp_path / "a.md").write_text(FEATURE)
    done = here("reproduce", "a.md", REPRISE_GITHUB_API_URL="ftp://x")
    mistake(done, "REPRISE_GITHUB_API_URL is invalid")


class Answer(BaseHTTPRequestHandler):
    status = 200
    headers_out: dict[str, str] = {}
    body = b"{}"
    seen: list[str] = []

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization", ""))
        self.send_response(self.status)
        for name, value in {**self.headers_out, "Content-Length": str(len(self.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args: object) -> None:
        return


@pytest.fixture
def github() -> Iterator[tuple[type[Answer], str]]:
    handler = type("Handler", (Answer,), {"seen": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (404, {}, "acme/pool#1 was not found, or is private."),
        (403, {"x-ratelimit-remaining": "0"}, "GitHub's rate limit is used up."),
        (401, {}, "GitHub refuses the token."),
        (302, {"Location": "http://127.0.0.1:1/x"}, "has moved to another host."),
        (500, {}, "failed with status 500"),
    ],
)
def test_what_github_refuses(
    here: Here, github: tuple[type[Answer], str], status: int, headers: dict[str, str], words: str
) -> None:
    handler, url = github
    handler.status, handler.headers_out = status, headers
    mistake(
        here("reproduce", "acme/pool#1", REPRISE_GITHUB_API_URL=url, REPRISE_GITHUB_TOKEN=TOKEN),
        words,
    )
    assert handler.seen == [f"token {TOKEN}"]


def test_an_issue_of_an_api_and_its_token_nowhere(
    tmp_path: Path, here: Here, github: tuple[type[Answer], str]
) -> None:
    handler, url = github
    handler.body = json.dumps(
        {"title": "Support x", "body": FEATURE + TOKEN, "number": 1, "labels": []}
    ).encode()
    argv = ("reproduce", "acme/pool#1", "--sandbox", "process", "--json", "--out", "run")
    done = here(*argv, REPRISE_GITHUB_API_URL=url, REPRISE_GITHUB_TOKEN=TOKEN)
    assert json.loads(done.stdout)["issue"]["repository"] == "acme/pool"
    written = "".join(path.read_text() for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert TOKEN not in done.stdout + done.stderr + written


def started(tmp_path: Path) -> subprocess.Popen[str]:
    """A run that has reached its program, which sleeps."""
    (tmp_path / "slow.md").write_text(SLOW)
    process = subprocess.Popen(
        [*COMMAND, "reproduce", "slow.md", "--sandbox", "process", "--out", "run"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment(),
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "search: running" in line:  # after the seconds since the start
            break
    time.sleep(1)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_with_a_report_of_what_was_done(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = started(tmp_path)
    children, asked = below(process.pid), time.monotonic()
    assert children
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - asked < 15
    assert process.returncode == 3
    assert "Stopping; the report so far follows." in err
    assert out.startswith("Cancelled")
    assert (
        json.loads((tmp_path / "run" / "report.json").read_text())["verdict"]["kind"] == "cancelled"
    )
    assert gone(children)


def test_the_second_signal_leaves_at_once(tmp_path: Path) -> None:
    process = started(tmp_path)
    children = below(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any("Stopping" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode in {130, 3}
    assert gone(children)


def below(pid: int) -> set[int]:
    """Every process that descends from one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rpartition(")")[2].split()[1]
            )
        except OSError:
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def gone(pids: set[int]) -> bool:
    """Whether all of them end within ten seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not any(Path(f"/proc/{pid}/exe").is_symlink() and running(pid) for pid in pids):
            return True
        time.sleep(0.2)
    return False


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.index
@pytest.mark.slow  # every proof; test_proving.py begins with the same verdict
def test_the_bundled_example_is_reproduced(tmp_path: Path) -> None:
    done = reprise(tmp_path, "example", "--sandbox", "process", "--json", "--out", "run")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    Draft202012Validator(json.loads(schema.text())).validate(data)
    verdict = data["verdict"]
    assert (verdict["kind"], verdict["determinism"], verdict["control"]["type"]) == (
        "reproduced",
        "deterministic",
        "fixed-version",
    )
    assert verdict["failures"] == verdict["runs"] >= 2
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names >= {
        "report.json",
        "report.md",
        "repro.py",
        "environment.lock",
        "logs",
        "attempts.jsonl",
    }
    assert data["bisect"]["first_fixed"]["at"] == "3.4.0"
    assert data["script"]["lines"] <= 8
    assert "confirm: run 2 of at most 40" in done.stderr
    assert (tmp_path / "run" / data["attempts"][0]["execution"]["log"]).exists()


def test_doctor_says_what_works_in_words_and_in_json(here: Here) -> None:
    done = here("doctor", "--json", PIP_EXTRA_INDEX_URL="https://user:hunter2@index.example/simple")
    data = json.loads(done.stdout)
    areas = {finding["area"] for finding in data["findings"]}
    assert areas == {"sandbox", "python", "packages", "device", "disk", "tool", "github"}
    assert done.returncode == (0 if data["ready"] else 2)
    process = next(finding for finding in data["findings"] if finding["name"] == "process")
    assert process["exposes"]
    assert all(finding["fix"] for finding in data["findings"] if finding["ok"] is False)
    assert "hunter2" not in done.stdout + done.stderr
    assert "index.example" in done.stdout
