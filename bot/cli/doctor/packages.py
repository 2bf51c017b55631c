"""Where packages and issues come from, and whether those places answer."""

import re
import subprocess
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx
from uv import find_uv_bin

from bot.cli.doctor.finding import Finding
from bot.settings import Settings, host
from sandbox.indexes import DEFAULT, Indexes, read

_TIMEOUT_S = 25
_QUICK = {
    "UV_HTTP_RETRIES": "0",
    "UV_HTTP_CONNECT_TIMEOUT": "5",
    "UV_HTTP_TIMEOUT": "10",
    "UV_NO_CONFIG": "1",
    "NO_COLOR": "1",
}
_COMPILE = ("pip", "compile", "-q", "--no-deps", "--no-cache", "--only-binary", ":all:")
_TORCH = "CPU builds of torch"


def check() -> tuple[Finding, ...]:
    """The index settings in force, and whether the index and PyTorch's CPU index answer."""
    environ = host()
    indexes = read(environ)
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


def _index(detail: str, *, ok: bool, fix: str = "") -> Finding:
    return Finding(area="packages", name="index", ok=ok, detail=detail, fix=fix, needed=True)


def _torch(environ: Mapping[str, str], indexes: Indexes) -> Finding:
    error = _resolve(environ, indexes, "torch", "--torch-backend", "cpu")
    if not error:
        return Finding(area="packages", name=_TORCH, ok=True, detail="PyTorch's own index answers")
    found = (path for folder in indexes.folders for path in folder.glob("torch-*+cpu-*.whl"))
    if wheels := sorted(path.name for path in found):
        detail = f"from find-links: {', '.join(wheels[:4])} (PyTorch's own index does not answer)"
        return Finding(area="packages", name=_TORCH, ok=True, detail=detail)
    return Finding(
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
        done = subprocess.run(
            argv,
            input=name,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            env={**env, **indexes.variables(), **_QUICK},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "no answer in time"
    except OSError as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = (re.sub(r"^\W+|^error: ", "", line).strip() for line in done.stderr.splitlines())
    return next((line for line in lines if line), f"uv exited with status {done.returncode}")


def github(settings: Settings) -> tuple[Finding, ...]:
    """Whether GitHub's API answers. Reports in files work without it."""
    host = urlsplit(settings.github_api_url).hostname
    access = "with a token" if settings.token else "no token: public issues only, 60 an hour"
    try:
        answer = httpx.get(f"{settings.github_api_url}/rate_limit", timeout=5)
    except httpx.HTTPError as error:
        detail = f"{host} cannot be reached ({type(error).__name__})"
        fix = "Give issues as files, or check the network."
        return (Finding(area="github", name="API", ok=None, detail=detail, fix=fix),)
    ok = answer.status_code < 500
    return (Finding(area="github", name="API", ok=ok, detail=f"{host} answers, {access}"),)
