"""What the host decides, from REPRISE_* environment variables: the only reader of the environment."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from dotenv import dotenv_values
from platformdirs import user_cache_path
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from bot.errors import UserError

_MOST_KEY_BYTES = 65_536
_OPENAI = "https://api.openai.com/v1"
_REGISTRATION = ("app_id", "app_slug", "private_key_file", "webhook_secret")


def _cache() -> Path:
    """As root a place that the unprivileged user of a sandbox can reach; root's home is closed to it."""
    return Path("/var/cache/reprise") if os.geteuid() == 0 else user_cache_path("reprise")


class Settings(BaseSettings):
    """Every field can be set as REPRISE_<NAME>; none has to be."""

    model_config = SettingsConfigDict(
        env_prefix="REPRISE_", frozen=True, extra="ignore", env_ignore_empty=True, populate_by_name=True
    )

    github_url: str = Field(
        "https://github.com", description="Where issues are looked at; a GitHub Enterprise Server's address."
    )
    github_api_url: str = Field(
        "https://api.github.com", description="The REST API; https://HOST/api/v3 on a GitHub Enterprise Server."
    )
    github_token: SecretStr | None = Field(
        None, description="Optional: reads private issues and lifts the rate limit. Sent to the REST API's host only."
    )
    network_timeout_s: float = Field(20.0, gt=0, description="How long one request to GitHub may take.")
    cache_dir: Path = Field(default_factory=_cache, description="Where environments and clones are kept between runs.")
    runs_dir: Path = Field(Path("reprise-runs"), description="Where run folders go when --out does not say.")

    app_id: int | None = Field(None, gt=0, description="The GitHub App's id; `reprise serve` without one shows the setup page.")
    app_slug: str = Field("", description="The App's name in addresses; its login is <slug>[bot].")
    private_key: SecretStr | None = Field(None, description="The App's private key, as PEM.")
    private_key_file: Path | None = Field(None, description="A file that holds it, instead.")
    webhook_secret: SecretStr | None = Field(None, description="What GitHub signs deliveries with; nothing is served without.")
    app_file: Path = Field(
        Path("reprise-app.env"),
        description="Where the setup page writes the App's id, key and secret, and where they are read.",
    )
    secrets_dir: Path | None = Field(
        None, description="A folder with a file a setting, named like reprise_database_url: secrets of Docker or Kubernetes."
    )
    public_url: str = Field("http://localhost:8000", description="Where this server is reached from outside.")
    bind: str = Field("127.0.0.1", description="The address that the server listens on.")
    port: int = Field(8000, ge=0, le=65_535, description="The port that the server listens on.")
    database_url: SecretStr = Field(
        SecretStr("sqlite:///reprise.db"), description="sqlite:///PATH, or postgresql+psycopg://USER:PASSWORD@HOST/NAME."
    )
    redis_url: SecretStr = Field(SecretStr("redis://localhost:6379/0"), description="The queue, unless --embedded.")
    lease_s: float = Field(20.0, gt=0, description="A worker silent for this long has died; another one goes on.")
    grace_s: float = Field(20.0, ge=0, description="How long a worker told to stop lets work end; then others go on with it.")
    write_gap_s: float = Field(1.0, ge=0, description="Seconds between two writes to GitHub; its own limit is one a second.")
    notify_gap_s: float = Field(3.0, ge=0, description="Seconds between two writes that notify people.")
    writes_per_minute: int = Field(80, ge=1, description="Most writes to GitHub a minute.")
    writes_per_hour: int = Field(500, ge=1, description="Most writes to GitHub an hour.")
    daily_runs: int = Field(500, ge=0, description="Most runs a day (UTC), over all repositories.")
    daily_minutes: int = Field(2_880, ge=0, description="Most minutes of compute a day (UTC), over all repositories.")
    daily_usd: float = Field(0.0, ge=0, description="Most dollars a day (UTC) that models may cost; 0: no limit.")
    run_minutes: int = Field(60, ge=1, description="Most minutes one run may take.")
    reconcile_s: float = Field(300.0, gt=0, description="How often GitHub is asked for deliveries that never arrived.")
    keep_days: int = Field(90, ge=1, description="How long finished runs are kept.")
    sandbox: Literal["auto", "docker", "bwrap", "process"] = Field(
        "auto", description="What a worker runs code in; auto never takes process, which isolates nothing."
    )

    model_url: str = Field("", description="A language model: base address of an OpenAI-compatible endpoint, https://HOST/v1.")
    model_key: SecretStr | None = Field(None, description="Its key. Sent to that address only.")
    openai_base_url: str = Field(
        "", validation_alias="OPENAI_BASE_URL", description="The address, when REPRISE_MODEL_URL is unset."
    )
    openai_api_key: SecretStr | None = Field(
        None,
        validation_alias="OPENAI_API_KEY",
        description="The key for OPENAI_BASE_URL, or for OpenAI when no address is set.",
    )
    model_reader: str = Field(
        "", description="The model that reads reports, cheap; NAME,NAME is a cascade: the next is asked when one fails."
    )
    model_writer: str = Field(
        "", description="The model that writes programs, strong. When one of the two is unset, it is the other."
    )
    model_timeout_s: float = Field(600.0, gt=0, description="How long one question may take, retries and mending included.")
    model_stall_s: float = Field(120.0, gt=0, description="How long a model that streams its answer may bring no word.")
    model_prices: Annotated[dict[str, tuple[float, float]] | None, NoDecode] = Field(
        None, description='USD for a million tokens, in and out, as JSON: {"NAME": [0.5, 2]}. Others count as free.'
    )
    model_structured: Literal["auto", "json_schema", "json_object", "plain"] = Field(
        "auto", description="How the form of answers is asked for; auto begins with json_schema and gives way."
    )

    @field_validator("github_url", "github_api_url", "public_url")
    @classmethod
    def _address(cls, value: str) -> str:
        return _plain_address(value, "https://github.example.com")

    @field_validator("model_url")
    @classmethod
    def _endpoint(cls, value: str) -> str:
        return _plain_address(value, "https://models.example.com/v1") if value else ""

    @field_validator("model_prices", mode="before")
    @classmethod
    def _table(cls, value: object) -> object:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError):
            raise ValueError('must be JSON such as {"NAME": [0.5, 2]}') from None

    @field_validator("model_prices")
    @classmethod
    def _prices(cls, value: dict[str, tuple[float, float]] | None) -> dict[str, tuple[float, float]] | None:
        if any(not 0 <= price < 1_000_000 for pair in (value or {}).values() for price in pair):
            raise ValueError("must hold prices in USD for a million tokens")
        return value

    @property
    def model_endpoint(self) -> tuple[str, str]:
        """Base address and key of the language model's endpoint, "" for what is not set. OPENAI_API_KEY is never sent to
        REPRISE_MODEL_URL. Raises UserError when OPENAI_BASE_URL is no use.
        """
        own, shared = (each.get_secret_value().strip() if each else "" for each in (self.model_key, self.openai_api_key))
        if self.model_url:
            return self.model_url, own
        try:
            given = _plain_address(self.openai_base_url, "https://models.example.com/v1") if self.openai_base_url else ""
        except ValueError as error:
            raise UserError(f"OPENAI_BASE_URL is not usable: {error}.", "Correct it, or set REPRISE_MODEL_URL.") from None
        return given or (_OPENAI if own or shared else ""), own or shared

    @property
    def token(self) -> str:
        """The token as plain text, "" when there is none."""
        return self.github_token.get_secret_value().strip() if self.github_token is not None else ""

    @property
    def key(self) -> str:
        """The App's private key as PEM, "" when there is none. Raises UserError when its file is no use."""
        if self.private_key is not None and self.private_key.get_secret_value().strip():
            return _pem(self.private_key.get_secret_value().replace("\\n", "\n"), "REPRISE_PRIVATE_KEY", "what it holds")
        if self.private_key_file is None:
            return ""
        try:
            with self.private_key_file.open("rb") as file:
                text = file.read(_MOST_KEY_BYTES).decode("ascii", "replace")
        except OSError as error:
            raise UserError(
                f"REPRISE_PRIVATE_KEY_FILE names {self.private_key_file}, which cannot be read ({error.strerror}).",
                "Correct the path, or let this user read the file.",
            ) from None
        return _pem(text, "REPRISE_PRIVATE_KEY_FILE", str(self.private_key_file))

    @property
    def registered(self) -> bool:
        """Whether the App's id, key and webhook secret are all there. Raises UserError that names what is missing when only
        some are: an App half configured must not be served, nor registered a second time.
        """
        held = {
            "REPRISE_APP_ID": self.app_id is not None,
            "REPRISE_PRIVATE_KEY_FILE": bool(self.key),
            "REPRISE_WEBHOOK_SECRET": self.webhook_secret is not None and bool(self.webhook_secret.get_secret_value().strip()),
        }
        missing = [name for name, there in held.items() if not there]
        if missing and len(missing) < len(held):
            raise UserError(
                f"The App is only half configured: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set.",
                f"Set it, in the environment or in {self.app_file}; or unset the others to register a new App.",
            )
        return not missing

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be shown."""
        hidden = (self.github_token, self.private_key, self.webhook_secret, self.model_key, self.openai_api_key)
        values = [each.get_secret_value().strip() for each in hidden if each is not None]
        with suppress(UserError):  # said where the key is needed
            values.append(self.key.strip())
        passwords = [urlsplit(url.get_secret_value()).password for url in (self.database_url, self.redis_url)]
        return tuple(value for value in (*values, *passwords) if value)


def _plain_address(value: str, such_as: str) -> str:
    parts = urlsplit(value)
    local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise ValueError("must be an https:// address")
    if not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ValueError(f"must be a plain address such as {such_as}")
    return value.rstrip("/")


def load() -> Settings:
    """The settings, or a sentence on the variable that is wrong. The environment wins over files of secrets, and those over
    the App's file.
    """
    folder = os.environ.get("REPRISE_SECRETS_DIR") or None
    if folder and not Path(folder).is_dir():
        raise UserError(f"REPRISE_SECRETS_DIR names {folder}, which is no folder.", "Correct or unset REPRISE_SECRETS_DIR.")
    try:
        settings = Settings(_secrets_dir=folder)
        held = _registration(settings.app_file, settings.model_fields_set)
        return Settings(_secrets_dir=folder, **held) if held else settings
    except ValidationError as error:
        first = error.errors()[0]
        asked = "_".join(str(part) for part in first["loc"][:1]).upper()
        name = asked if asked.startswith("OPENAI_") else f"REPRISE_{asked}"
        raise UserError(f"{name} is not usable: {first['msg']}.", f"Correct or unset {name}.") from None


def _registration(path: Path, known: set[str]) -> dict[str, Any]:
    """What the App's file says and nothing else decides. Only these four: a file that happens to lie in the folder of a clone
    must not be able to change where tokens are sent.
    """
    try:
        if not path.is_file():
            return {}
        held = dotenv_values(path, interpolate=False, encoding="utf-8")
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UserError(
            f"The App's file {path} cannot be read ({why}).", "Correct REPRISE_APP_FILE, or let this user read it."
        ) from None
    names = {name for name in _REGISTRATION if name not in known}
    if "private_key" in known:
        names -= {"private_key_file"}
    values: dict[str, Any] = {name: value for name in names if (value := held.get(f"REPRISE_{name.upper()}"))}
    if "private_key_file" in values:
        values["private_key_file"] = path.parent / values["private_key_file"]
    return values


def _pem(text: str, name: str, where: str) -> str:
    if "-----BEGIN" not in text or "PRIVATE KEY-----" not in text:
        raise UserError(
            f"{name}: {where} is no private key in PEM.", "GitHub makes one under Private keys in the App's settings."
        )
    return text.strip() + "\n"


def host() -> dict[str, str]:
    """The host's own variables, for what other tools are configured by: pip, uv, proxies, the search path."""
    return dict(os.environ)


def secrets() -> tuple[str, ...]:
    """Values that must never be shown, as far as the settings can be read."""
    try:
        return load().secrets
    except UserError:
        return ()
