"""What works on this machine, and how to fix the rest: the checks of `reprise doctor`."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import fill
from typing import Literal
from urllib.parse import urlsplit

import httpx
from uv import find_uv_bin

from bot.kernel.redaction import redact
from bot.kernel.settings import Settings, host
from bot.kernel.values import Record
from sandbox import cache as sandbox_cache, footprint
from sandbox.cache import Cache
from sandbox.indexes import DEFAULT, Indexes, read_indexes
from sandbox.interpreters import discover
from sandbox.select import kinds

Area = Literal["sandbox", "python", "packages", "device", "disk", "tool", "github"]


_PROGRAM_S, _RESOLVE_S = 15, 25


_QUICK = {
    "UV_HTTP_RETRIES": "0",
    "UV_HTTP_CONNECT_TIMEOUT": "5",
    "UV_HTTP_TIMEOUT": "10",
    "UV_NO_CONFIG": "1",
    "NO_COLOR": "1",
}


_COMPILE = ("pip", "compile", "-q", "--no-deps", "--no-cache", "--only-binary", ":all:")


_TORCH = "CPU builds of torch"


class CheckResult(Record):
    """`ok` is None for what is missing and not needed. `needed` things must work before anything
    can be reproduced.
    """

    area: Area
    name: str
    ok: bool | None
    detail: str
    fix: str = ""
    needed: bool = False
    protects: tuple[str, ...] = ()
    exposes: tuple[str, ...] = ()


class Findings(Record):
    """All of them, and whether this machine can reproduce a report."""

    ready: bool
    findings: tuple[CheckResult, ...]


def check_sandboxes() -> tuple[CheckResult, ...]:
    """Try each sandbox, and tell what it contains. Any one that isolates is enough."""
    sandboxes_and_health = ((sandbox.name, sandbox.check()) for sandbox in kinds())
    return tuple(
        CheckResult(
            area="sandbox",
            name=name,
            ok=health.works,
            detail=health.detail,
            fix="" if health.works else health.fix,
            protects=health.protects if health.works else (),
            exposes=health.exposes if health.works else (),
        )
        for name, health in sandboxes_and_health
    )


def pythons() -> tuple[CheckResult, ...]:
    """The Python versions that environments can use."""
    minors = [interpreter.minor for interpreter in discover(host())]
    fix = "For more reports, install more versions: uv python install 3.9 3.10 3.12"
    detail = ", ".join(minors) or "no interpreter that can be copied into a sandbox"
    return (
        CheckResult(
            area="python",
            name="versions",
            ok=bool(minors),
            detail=detail,
            fix="" if len(minors) > 2 else fix,
            needed=True,
        ),
    )


def devices() -> tuple[CheckResult, ...]:
    """NVIDIA GPUs. Only --device gpu needs one."""
    query = "--query-gpu=name,memory.total,driver_version"
    listing = run(("nvidia-smi", query, "--format=csv,noheader"))
    if listing is None:
        detail = "no NVIDIA GPU found; reports that need one end in needs_hardware"
        return (CheckResult(area="device", name="gpu", ok=None, detail=detail),)
    lines = (line.strip() for line in listing.splitlines())
    return tuple(
        CheckResult(area="device", name="gpu", ok=True, detail=line) for line in lines if line
    )


def tools() -> tuple[CheckResult, ...]:
    """The programs that Reprise starts."""
    try:
        uv = run((find_uv_bin(), "--version"))
    except FileNotFoundError:
        uv = None
    git = run(("git", "--version"))
    return (
        _tool("uv", uv, "Reinstall Reprise; uv comes with it.", needed=True),
        _tool("git", git, "Install git; unreleased versions and --repo need it.", needed=False),
    )


def _tool(name: str, version: str | None, fix: str, *, needed: bool) -> CheckResult:
    return CheckResult(
        area="tool",
        name=name,
        ok=version is not None,
        detail=(version or "not found").strip(),
        fix="" if version else fix,
        needed=needed,
    )


def run(argv: Sequence[str]) -> str | None:
    """A program's output, or None if it is missing, fails or takes too long."""
    try:
        process = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=_PROGRAM_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout if process.returncode == 0 else None


def packages() -> tuple[CheckResult, ...]:
    """The index settings in force, and whether the index and PyTorch's CPU index answer."""
    environ = host()
    indexes = read_indexes(environ)
    if indexes.offline:
        places = len(indexes.find_links)
        detail = f"offline by configuration; files from {places} find-links locations"
        return (_index(detail, ok=bool(indexes.find_links)),)
    error = _resolve(environ, indexes, "packaging")
    fix = (
        "Check the network, the proxy and the index settings of pip or uv "
        "(PIP_INDEX_URL, UV_DEFAULT_INDEX)."
    )
    detail = _settings(indexes) + (f": {error}" if error else ", answers")
    index = _index(detail, ok=not error, fix=fix if error else "")
    return (index, _torch(environ, indexes))


def _index(detail: str, *, ok: bool, fix: str = "") -> CheckResult:
    return CheckResult(area="packages", name="index", ok=ok, detail=detail, fix=fix, needed=True)


def _torch(environ: Mapping[str, str], indexes: Indexes) -> CheckResult:
    error = _resolve(environ, indexes, "torch", "--torch-backend", "cpu")
    if not error:
        return CheckResult(
            area="packages", name=_TORCH, ok=True, detail="PyTorch's own index answers"
        )
    wheel_paths = (path for folder in indexes.folders for path in folder.glob("torch-*+cpu-*.whl"))
    if wheels := sorted(path.name for path in wheel_paths):
        detail = f"from find-links: {', '.join(wheels[:4])} (PyTorch's own index does not answer)"
        return CheckResult(area="packages", name=_TORCH, ok=True, detail=detail)
    return CheckResult(
        area="packages",
        name=_TORCH,
        ok=None,
        detail=f"PyTorch's own index does not answer ({error}); "
        "torch comes from the package index, which may pull in CUDA",
        fix="Allow PyTorch's wheel index, or put CPU wheels in a find-links folder.",
    )


def _settings(indexes: Indexes) -> str:
    """The index settings, without user names and passwords."""
    bare = indexes.without_secrets()
    parts = ["the default index" if bare.index == DEFAULT else bare.index]
    parts += [f"also {address}" for address in bare.extra]
    parts += [f"files from {place}" for place in bare.find_links]
    parts += ["custom certificate"] if bare.certificate else []
    return ", ".join(parts)


def _resolve(environ: Mapping[str, str], indexes: Indexes, name: str, *options: str) -> str:
    """Resolve one name with uv and no cache. Return "" on success, else the first error line."""
    env = {"PATH": environ.get("PATH", ""), "HOME": environ.get("HOME", "/")}
    argv = [find_uv_bin(), *_COMPILE, *options, "--python", sys.executable, "-"]
    try:
        process = subprocess.run(
            argv,
            input=name,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_RESOLVE_S,
            env={**env, **indexes.variables(), **_QUICK},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "no answer in time"
    except OSError as error:
        return str(error)
    if process.returncode == 0:
        return ""
    lines = (re.sub(r"^\W+|^error: ", "", line).strip() for line in process.stderr.splitlines())
    return next((line for line in lines if line), f"uv exited with status {process.returncode}")


def github(settings: Settings) -> tuple[CheckResult, ...]:
    """Whether GitHub's API answers. Reports in files work without it."""
    host = urlsplit(settings.github_api_url).hostname
    access = "with a token" if settings.token else "no token: public issues only, 60 an hour"
    try:
        answer = httpx.get(f"{settings.github_api_url}/rate_limit", timeout=5)
    except httpx.HTTPError as error:
        detail = f"{host} cannot be reached ({type(error).__name__})"
        fix = "Check the network, or pass issues as files."
        return (CheckResult(area="github", name="API", ok=None, detail=detail, fix=fix),)
    ok = answer.status_code < 500
    return (CheckResult(area="github", name="API", ok=ok, detail=f"{host} answers, {access}"),)


_MIN_FREE_GB = 5


def disk(settings: Settings) -> tuple[CheckResult, ...]:
    """Free space for environments, how many are cached, and how far each cap is reached."""
    cache = settings.cache_dir
    place = next((path for path in (cache, *cache.parents) if path.exists()), Path("/"))
    free = shutil.disk_usage(place).free / 1e9
    count = sum(1 for _ in cache.glob("envs/*/.complete"))
    enough = free >= _MIN_FREE_GB
    fix = f"Free some space, or point REPRISE_CACHE_DIR at a disk with {_MIN_FREE_GB} GB."
    room = CheckResult(
        area="disk",
        name="cache",
        ok=enough,
        detail=f"{cache}: {free:.1f} GB free, {count} environments cached",
        fix="" if enough else fix,
        needed=True,
    )
    areas = (
        _share(area.name, area.used(Cache(cache)), settings.caps[area.name])
        for area in sandbox_cache.AREAS
    )
    runs = sum(map(footprint.size_of, settings.runs_dir.glob("*/")))
    return (room, *areas, _share("runs", runs, int(settings.runs_gb * 1e9)))


def _share(name: str, usage: int, most: int) -> CheckResult:
    """How much of a cap is in use. What exceeds it goes before the next run."""
    detail = f"{usage / 1e9:.1f} of at most {most / 1e9:g} GB (REPRISE_{name.upper()}_GB)"
    return CheckResult(area="disk", name=name, ok=True, detail=detail)


_TITLES: dict[Area, str] = {
    "sandbox": "Sandboxes",
    "python": "Python",
    "packages": "Packages",
    "device": "Devices",
    "disk": "Disk",
    "tool": "Tools",
    "github": "GitHub",
}


_STATES = {True: "ok", False: "NO", None: "--"}


def examine(settings: Settings) -> Findings:
    """The findings of all checks, made in parallel. One isolating sandbox is needed as well."""
    every: list[Callable[[], tuple[CheckResult, ...]]] = [
        check_sandboxes,
        pythons,
        packages,
        devices,
        lambda: disk(settings),
        tools,
        lambda: github(settings),
    ]
    with ThreadPoolExecutor(max_workers=len(every)) as pool:
        findings = [finding for part in pool.map(lambda check: check(), every) for finding in part]
    sandboxes = (
        finding for finding in findings if finding.area == "sandbox" and finding.name != "process"
    )
    ready = any(finding.ok for finding in sandboxes) and all(
        finding.ok for finding in findings if finding.needed
    )
    return Findings(ready=ready, findings=tuple(findings))


def as_text(findings: Findings, width: int = 80) -> str:
    """The findings for people."""
    lines, area = list[str](), ""
    for finding in findings.findings:
        if finding.area != area:
            area = finding.area
            lines += ["", _TITLES[finding.area]] if lines else [_TITLES[finding.area]]
        head = f"  {_STATES[finding.ok]:<3} {finding.name}: {finding.detail}"
        lines.append(_wrap(head, width))
        details = (
            ("fix", finding.fix),
            ("protects", "; ".join(finding.protects)),
            ("does not protect", "; ".join(finding.exposes)),
        )
        lines += [_wrap(f"      {label}: {text}", width) for label, text in details if text]
    last = "Ready to reproduce." if findings.ready else "Not ready: fix what is marked NO."
    return redact("\n".join([*lines, "", last])) + "\n"


def _wrap(text: str, width: int) -> str:
    return fill(
        text,
        max(width, 40),
        subsequent_indent="        ",
        break_long_words=False,
        break_on_hyphens=False,
    )
