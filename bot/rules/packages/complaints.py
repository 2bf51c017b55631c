"""What the resolver's words say: which name, version, Python or date stood in the way. Source:
uv's error messages.
"""

import re

_UNKNOWN = re.compile(r"\b([\w.-]+) was not found in the package registry")
_FILTERED = re.compile(r"`([\w.-]+)` was filtered by `exclude-newer`")
_NO_WHEEL = re.compile(
    r"Wheels are required for `([\w.-]+)`|\b([\w.-]+)(?:\[[\w,.-]+\])?(?:[=<>!]=?\S+)? ha(?:s|ve) "
    r"no usable wheels"
)
_HAVE_NONE = r"ha(?:s|ve) no (?:usable wheels|wheels with a matching)"
_FOREIGN = re.compile(r"\b([\w.-]+)(?:[=<>!]=?\S+)? ha(?:s|ve) no wheels with a matching")
_TAGS = re.compile(r"found wheels for `([\w.-]+)` .*?tags?: (.+)")
_OUTLYING = re.compile(r"only ([\w.-]+)==\S+ fits, an? (?:pre-release|release years older)")
_TAG = re.compile(r"`(?:cp|py)3(\d+)`")
_PYTHON = re.compile(
    r"[Pp]ython(?: version)? ?\(?\d[\d.]*\)? does not satisfy Python([<>=!~][^ ,]+(?:,[<>=!~][^ "
    r"]+)*)"
)


def unknown(text: str) -> list[str]:
    """Names that no index knows."""
    return list(dict.fromkeys(_UNKNOWN.findall(text)))


def hidden_by_date(text: str) -> list[str]:
    """Names whose fitting releases are newer than the cut-off."""
    return list(dict.fromkeys(_FILTERED.findall(text)))


def without_wheel(text: str) -> list[str]:
    """Names that come only as source, or with no wheel for this Python."""
    return list(dict.fromkeys(first or second for first, second in _NO_WHEEL.findall(text)))


def for_other_pythons(text: str) -> list[str]:
    """Names of which only wheels for other Pythons or platforms are left."""
    return list(dict.fromkeys(_FOREIGN.findall(text)))


def span(text: str, name: str) -> str:
    """The versions of a distribution that have no wheel, as a specifier; "" for all of them."""
    found = re.search(rf"(?<![\w.-]){re.escape(name)}((?:,?[<>=!~]=?[^\s,]+)+) {_HAVE_NONE}", text)
    return found[1] if found else ""


def outlying(text: str) -> list[str]:
    """Names of which only a release that the report cannot mean was left (`nearby.outlier`)."""
    return list(dict.fromkeys(_OUTLYING.findall(text)))


def pythons_with_wheels(text: str) -> set[str]:
    """Minor versions of Python for which the missing wheels exist, as far as the resolver says."""
    sets = [{f"3.{number}" for number in _TAG.findall(tags)} for _, tags in _TAGS.findall(text)]
    return set.intersection(*sets) if sets else set()


def python_bounds(text: str) -> list[str]:
    """Bounds on Python that the one in use does not meet."""
    return [bound.rstrip(".,)") for bound in _PYTHON.findall(text)]


def named(text: str, name: str) -> bool:
    """Whether the resolver speaks of a distribution."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def first_cause(text: str) -> str:
    """The resolver's reason in one line."""
    lines = [
        " ".join(line.split())
        for line in text.splitlines()
        if line.strip() and not line.startswith(("hint", "error: No sol"))
    ]
    joined = " ".join(lines).removeprefix("cause: ")
    return re.split(r", we can conclude|\. And because", joined)[0].removeprefix("Because ")[:300]
