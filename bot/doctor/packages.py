"""Where packages and issues come from, and whether those places answer: asked the way a build asks, with uv."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx
from uv import find_uv_bin

from bot.doctor.finding import Finding
from bot.settings import Settings
from sandbox.indexes import DEFAULT, Indexes, read

_PATIENCE_S = 25


def check(environ: Mapping[str, str]) -> tuple[Finding, ...]:
    """The index settings in force, and an answer from the index and from the source of torch for the processor."""
    indexes = read(environ)
    if indexes.offline:
        detail = f"no index (offline by configuration); files from {len(indexes.find_links)} places"
        return (Finding(area="packages", name="index", ok=bool(indexes.find_links), detail=detail, needed=True),)
    said = _asked(environ, indexes, "packaging")
    fix = "Check the network, the proxy and the index settings of pip or uv (PIP_INDEX_URL, UV_DEFAULT_INDEX)."
    index = Finding(
        area="packages",
        name="index",
        ok=not said,
        detail=_settings(indexes) + (f": {said}" if said else ", answers"),
        fix=fix if said else "",
        needed=True,
    )
    return (index, _torch(environ, indexes))


def _torch(environ: Mapping[str, str], indexes: Indexes) -> Finding:
    said = _asked(environ, indexes, "torch", "--torch-backend", "cpu")
    wheels = sorted(path.name for folder in indexes.folders for path in folder.glob("torch-*+cpu-*.whl"))
    if said and wheels:
        detail = f"from a find-links folder: {', '.join(wheels[:4])} (PyTorch's own index does not answer)"
        return Finding(area="packages", name="torch for the processor", ok=True, detail=detail)
    if said:
        detail = f"PyTorch's own index does not answer ({said}); torch comes from the package index, which may draw in CUDA"
        fix = "Let PyTorch's wheel index through the proxy, or put CPU wheels in a find-links folder."
        return Finding(area="packages", name="torch for the processor", ok=None, detail=detail, fix=fix)
    return Finding(area="packages", name="torch for the processor", ok=True, detail="PyTorch's own index answers")


def _settings(indexes: Indexes) -> str:
    """Whose index, without names and passwords."""
    bare = indexes.without_secrets()
    parts = ["the default index" if bare.index == DEFAULT else bare.index]
    parts += [f"also {address}" for address in bare.extra]
    parts += [f"files from {place}" for place in bare.find_links]
    parts += ["own certificate"] if bare.certificate else []
    return ", ".join(parts)


def _asked(environ: Mapping[str, str], indexes: Indexes, name: str, *options: str) -> str:
    """Have uv resolve one name without the cache; "" when that works, else the first words of why not."""
    quick = {
        "UV_HTTP_RETRIES": "0",
        "UV_HTTP_CONNECT_TIMEOUT": "5",
        "UV_HTTP_TIMEOUT": "10",
        "UV_NO_CONFIG": "1",
        "NO_COLOR": "1",
    }
    env = {"PATH": environ.get("PATH", ""), "HOME": environ.get("HOME", "/"), **indexes.variables(), **quick}
    argv = [find_uv_bin(), "pip", "compile", "-q", "--no-deps", "--no-cache", "--only-binary", ":all:", *options]
    try:
        done = subprocess.run(
            [*argv, "--python", sys.executable, "-"],
            input=name,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            env=env,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "no answer in time" if isinstance(error, subprocess.TimeoutExpired) else str(error)
    lines = [re.sub(r"^\W+|^error: ", "", line).strip() for line in done.stderr.splitlines() if line.strip()]
    return "" if done.returncode == 0 else (lines[0] if lines else f"uv ends with {done.returncode}")


def github(settings: Settings) -> tuple[Finding, ...]:
    """Whether issues can be read by their address; files work without."""
    hostname = urlsplit(settings.github_api_url).hostname
    token = "with a token" if settings.token else "without a token, so public issues only and 60 an hour"
    try:
        status = httpx.get(f"{settings.github_api_url}/rate_limit", timeout=5, follow_redirects=False).status_code
    except httpx.HTTPError as error:
        detail = f"{hostname} cannot be reached ({type(error).__name__})"
        return (Finding(area="github", name="API", ok=None, detail=detail, fix="Give issues as files, or check the network."),)
    return (Finding(area="github", name="API", ok=status < 500, detail=f"{hostname} answers, {token}"),)
