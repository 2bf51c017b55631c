"""A new App's credentials: fetched from GitHub once by the manifest flow's code, kept in files
that only this user can read.
"""

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, Field, SecretStr, ValidationError

from bot.kernel.errors import TransientError, UserError
from bot.kernel.files import write
from bot.kernel.settings import Settings

_CODE = re.compile(r"[\w-]{1,255}", re.ASCII)
_MOST_BYTES = 262_144
_AGAIN = (
    "Start again on the setup page. If GitHub has already created the App, delete it in its "
    "settings there."
)
_HEAD = (
    "# Credentials of the GitHub App, written by the setup page of `reprise serve`.\n"
    "# Keep them secret, and keep a copy.\n"
)


class Registration(BaseModel):
    """GitHub's one-time answer about a new App. The client secret is left out: nothing here signs
    people in.
    """

    id: int = Field(gt=0)
    slug: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,99}$")
    pem: SecretStr
    webhook_secret: SecretStr = Field(min_length=8)
    html_url: str = ""


@dataclass(frozen=True, slots=True)
class RegistrationFiles:
    """Where the credentials were written, and where existing files were moved to."""

    app_file: Path
    key_file: Path
    moved: tuple[Path, ...] = ()


def convert(code: str, settings: Settings) -> Registration:
    """Trade the code of the callback for the App's credentials; GitHub allows it once, within an
    hour.

    Raises UserError when GitHub does not know the code, TransientError when it does not answer.
    """
    if not _CODE.fullmatch(code):
        raise UserError("This does not look like a code from GitHub.", _AGAIN)
    url = f"{settings.github_api_url}/app-manifests/{code}/conversions"
    host = urlsplit(url).hostname
    headers = {"Accept": "application/vnd.github+json", "User-Agent": "reprise"}
    try:
        with (
            httpx.Client(
                timeout=settings.network_timeout_s, follow_redirects=False, headers=headers
            ) as client,
            client.stream("POST", url) as answer,
        ):
            body = _body(answer)
    except httpx.HTTPError as error:  # its text may hold the address, and with it the code
        raise TransientError(f"{host} does not answer ({type(error).__name__}).", _AGAIN) from None
    if answer.status_code in {404, 422}:
        raise UserError(
            f"{host} does not accept this code: it expires after one hour and works once.", _AGAIN
        )
    if answer.status_code != httpx.codes.CREATED:
        raise TransientError(
            f"{host} answered {answer.status_code} instead of the App's credentials.", _AGAIN
        )
    try:
        return Registration.model_validate_json(body)
    except ValidationError as error:
        fields = ", ".join(
            ".".join(str(part) for part in problem["loc"]) or "JSON" for problem in error.errors()
        )
        raise TransientError(
            f"{host} answered without what an App needs ({fields}).", _AGAIN
        ) from None


def _body(answer: httpx.Response) -> bytes:
    body = b""
    for piece in answer.iter_bytes():
        body += piece
        if len(body) > _MOST_BYTES:
            raise TransientError("GitHub's answer is too long to be an App's credentials.", _AGAIN)
    return body


def key_file(app_file: Path) -> Path:
    """The private key's file, in the folder of the App's file that names it."""
    return app_file.with_name(f"{app_file.stem}.private-key.pem")


def check_place(app_file: Path) -> None:
    """Raise UserError when the credentials could not be stored there. Asked first, because GitHub
    sends them only once.
    """
    folder = app_file.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(
            f"The App's credentials cannot be stored in {folder}: "
            f"it is {'not writable' if folder.is_dir() else 'not a folder'}.",
            "Make the folder and let this user write to it, or point REPRISE_APP_FILE elsewhere.",
        )


def keep(new: Registration, app_file: Path) -> RegistrationFiles:
    """Write the key, then the file that names it; each whole or not at all, readable by this
    user only. What stood there is moved aside, never lost. Raises OSError.
    """
    key = key_file(app_file)
    paths_moved = tuple(
        path for path in (_move_aside(key), _move_aside(app_file)) if path is not None
    )
    write(key, new.pem.get_secret_value().strip() + "\n", 0o600)
    lines = {
        "APP_ID": str(new.id),
        "APP_SLUG": new.slug,
        "PRIVATE_KEY_FILE": key.name,
        "WEBHOOK_SECRET": new.webhook_secret.get_secret_value(),
    }
    settings = "".join(f"REPRISE_{name}={_quote(value)}\n" for name, value in lines.items())
    write(app_file, _HEAD + settings, 0o600)
    return RegistrationFiles(app_file, key, paths_moved)


def _quote(value: str) -> str:
    if re.fullmatch(r"[\w.:/@+=-]+", value, re.ASCII):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _move_aside(path: Path) -> Path | None:
    if not path.exists():
        return None
    aside = path.with_name(f"{path.name}.{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    path.rename(aside)
    return aside
