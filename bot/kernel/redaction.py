"""Credentials taken out of text: the host's own by their values, those of others by what they
look like.
"""

import re
from collections.abc import Iterable, Iterator

REDACTED = "[redacted]"

# What is a credential wherever it stands: prefixes that their issuers chose so that they can be
# found. A pattern is tried on a text that holds one of the words before it: they are found in a
# hundredth of the time.
_SHAPES = tuple(
    (words.split(), re.compile(pattern))
    for words, pattern in (
        (
            "-----BEGIN",
            (
                r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
                r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
            ),
        ),
        ("github_pat_", r"github_pat_[A-Za-z0-9_]{16,}"),
        ("gh", r"gh[pousr]_[A-Za-z0-9]{16,}"),
        ("glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),
        ("sk-", r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,}"),
        ("k_", r"(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("hf_ api_org_", r"(?<![A-Za-z0-9])(?:hf_|api_org_)[A-Za-z0-9]{16,}"),
        (
            "r8_ gsk_ nvapi- dapi",
            r"(?<![A-Za-z0-9])(?:r8_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{30,}|nvapi-[A-Za-z0-9_-]{30,}|dapi[0-9a-f]{32})",
        ),
        ("AKIA ASIA", r"(?:AKIA|ASIA)[0-9A-Z]{16}"),
        ("AIza", r"AIza[0-9A-Za-z_-]{35}"),
        ("ya29.", r"(?<![A-Za-z0-9])ya29\.[A-Za-z0-9_-]{20,}"),
        ("GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
        ("xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("hooks.slack.com/", r"(?<=hooks\.slack\.com/)services/[A-Za-z0-9/]{20,}"),
        ("/api/webhooks/", r"(?<=/api/webhooks/)\d{10,25}/[A-Za-z0-9_-]{20,}"),
        (":AA", r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{30,}"),
        ("SG.", r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}"),
        ("pypi-", r"pypi-[A-Za-z0-9_-]{32,}"),
        ("npm_", r"npm_[A-Za-z0-9]{30,}"),
        ("_v1_", r"do[opr]_v1_[0-9a-f]{40,}"),
        ("dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{20,}"),
        (
            ".eyJ",
            r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}",
        ),
        ("://", r"(?<=://)[^\s/@:]{0,200}:[^\s/]{1,1000}(?=@)"),
        ("://", r"(?<=://)[A-Za-z0-9_-]{20,1000}(?=@)"),
    )
)

# What is one because of the word before it: group 1 stays. A value has a digit, so that names of
# variables and calls stay. The words before a pattern are looked for in the casefolded text.
_VALUE = r"(?=[^\s\d]{0,200}\d)[A-Za-z0-9+/_~%=-]{16,}(?![\w(.\[])"
_BY_CONTEXT = tuple(
    (words.split(), re.compile(pattern, re.IGNORECASE))
    for words, pattern in (
        ("bearer bas token", r"\b((?:bearer|basic|token)\s+)(?=\S*\d)[A-Za-z0-9._~+/=-]{16,}"),
        (
            "key secret token",
            r"((?:(?:api|access|account|secret|private)[_-]?key|secret|(?:access|auth|refresh|api|bearer|hf|hub)[_-]?token"
            r"|[A-Z0-9]_token)[\"']?\s{0,3}[:=]\s{0,3}[\"']?)" + _VALUE,
        ),
        ("token", r"((?<![A-Za-z0-9_])token[\"']?\s{0,3}[:=]\s{0,3}[\"'])" + _VALUE),
        ("key", r"([\"']key[\"']\s{0,3}:\s{0,3}[\"'])[0-9a-f]{32,64}(?=[\"'])"),
        (
            "passw pwd",
            r"((?:password|passwd|pwd)[\"']?\s{0,3}[:=]\s{0,3}[\"']?)(?=[^\s\d]{0,200}\d)[^\s\"'`<>(){}\[\],;&]{6,}(?![(\[])",
        ),
        ("password", r"(\bpassword\s{1,3})(?=[^\s\d]{0,200}\d)[A-Za-z0-9]{16,}"),
        ("wandb", r"(\bwandb\s{1,3}login\s{1,3}(?:--\w{1,20}\s{1,3})?)[0-9a-f]{40}"),
        (
            "=",
            r"([?&](?:sig|key|token|(?:[\w-]{0,40}[_-])?(?:token|signature|credential))=)[^\s&\"'`<>]{16,}",
        ),
    )
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Text without credentials: the given values wherever they stand, and whatever looks like
    one.
    """
    for secret in _values(secrets):
        text = text.replace(secret, REDACTED)
    for pattern in _patterns(text):
        text = pattern.sub(rf"\g<1>{REDACTED}" if pattern.groups else REDACTED, text)
    return text


def credentials(text: str, secrets: Iterable[str] = ()) -> Iterator[tuple[int, int]]:
    """The start and end of everything that `redact` takes for a credential."""
    exact = (re.compile(re.escape(secret)) for secret in _values(secrets))
    for pattern in (*exact, *_patterns(text)):
        for match in pattern.finditer(text):
            yield (match.end(1) if pattern.groups else match.start()), match.end()


def _values(secrets: Iterable[str]) -> list[str]:
    return sorted({value for value in secrets if len(value) >= 6}, key=len, reverse=True)


def _patterns(text: str) -> Iterator[re.Pattern[str]]:
    """The patterns that may match in a text; group 1 of one that has it is no secret."""
    folded = text.casefold()
    for text_to_search, table in ((text, _SHAPES), (folded, _BY_CONTEXT)):
        for words, pattern in table:
            if any(map(text_to_search.__contains__, words)):
                yield pattern
