"""Settings from REPRISE_* environment variables. Only this file reads the environment."""

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

from bot.kernel.errors import UserError

# The App's credentials on disk, and checks that settings share.

_MAX_KEY_BYTES = 65_536
_STORED_NAMES = ("app_id", "app_slug", "private_key_file", "webhook_secret")


def plain_address(value: str, example: str) -> str:
    """A URL without user, query and fragment. Raises ValueError; plain http only on loopback."""
    parts = urlsplit(value)
    local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise ValueError("must be an https:// address")
    if not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ValueError(f"must be a plain address such as {example}")
    return value.rstrip("/")


def pem(text: str, name: str, where: str = "its value") -> str:
    """A private key in PEM. Raises UserError that names the setting."""
    if "-----BEGIN" not in text or "PRIVATE KEY-----" not in text:
        raise UserError(
            f"{name}: {where} is not a private key in PEM.",
            "GitHub creates one under Private keys in the App's settings.",
        )
    return text.strip() + "\n"


def key_in_file(path: Path) -> str:
    """The private key in a file. Raises UserError."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_KEY_BYTES).decode("ascii", "replace")
    except OSError as error:
        raise UserError(
            f"REPRISE_PRIVATE_KEY_FILE: cannot read {path} ({error.strerror}).",
            "Correct the path, or let this user read the file.",
        ) from None
    return pem(text, "REPRISE_PRIVATE_KEY_FILE", str(path))


def registration(path: Path, names_set: set[str]) -> dict[str, Any]:
    """The credentials in the App's file that `known` settings do not override.

    Only these four are read: a file in the folder of a clone must not change where tokens go.
    """
    try:
        stored_values = (
            dotenv_values(path, interpolate=False, encoding="utf-8") if path.is_file() else {}
        )
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UserError(
            f"Cannot read the App's file {path} ({why}).",
            "Correct REPRISE_APP_FILE, or let this user read it.",
        ) from None
    names = set(_STORED_NAMES) - names_set
    if "private_key" in names_set:
        names -= {"private_key_file"}
    values_by_name = {name: stored_values.get(f"REPRISE_{name.upper()}") for name in names}
    values: dict[str, Any] = {name: value for name, value in values_by_name.items() if value}
    if "private_key_file" in values:
        values["private_key_file"] = path.parent / values["private_key_file"]
    return values


_OPENAI = "https://api.openai.com/v1"
_STRONG = 16  # characters


def _cache() -> Path:
    """The user's cache. For root, a folder that the sandbox's unprivileged user can reach."""
    return Path("/var/cache/reprise") if os.geteuid() == 0 else user_cache_path("reprise")


class Settings(BaseSettings):
    """Each field is REPRISE_<NAME> in the environment. All are optional."""

    model_config = SettingsConfigDict(
        env_prefix="REPRISE_",
        frozen=True,
        extra="ignore",
        env_ignore_empty=True,
        populate_by_name=True,
    )

    github_url: str = Field(
        "https://github.com",
        description="GitHub, or the address of a GitHub Enterprise Server.",
    )
    github_api_url: str = Field(
        "https://api.github.com",
        description="The REST API; https://HOST/api/v3 on a GitHub Enterprise Server.",
    )
    github_token: SecretStr | None = Field(
        None,
        description=(
            "Optional token for private issues and a higher rate limit. Sent only to the "
            "API's host."
        ),
    )
    network_timeout_s: float = Field(
        20.0, gt=0, description="Seconds that one request to GitHub may take."
    )
    arxiv_url: str = Field(
        "https://export.arxiv.org", description="Where papers are fetched from by their arXiv id."
    )
    cache_dir: Path = Field(default_factory=_cache, description="Cache of environments and clones.")
    runs_dir: Path = Field(Path("reprise-runs"), description="Run folders, unless --out names one.")
    environments_gb: float = Field(
        20.0,
        gt=0,
        description="GB that environments may take. The one used least recently goes first.",
    )
    wheels_gb: float = Field(2.0, gt=0, description="GB that wheels built from source may take.")
    clones_gb: float = Field(
        10.0, gt=0, description="GB that clones may take, and code that was written for papers."
    )
    indexes_gb: float = Field(2.0, gt=0, description="GB that indexes of source code may take.")
    runs_gb: float = Field(10.0, gt=0, description="GB that the folder of run folders may take.")
    data_dir: Path | None = Field(
        None,
        description=(
            "Folder with the data that repositories name under `data:`: folders, files and "
            "archives. Mounted read-only in runs."
        ),
    )
    data_gb: float = Field(20.0, gt=0, description="GB that unpacked archives of data may take.")
    hub_dir: Path | None = Field(
        None,
        description=(
            "Hugging Face cache (HF_HOME, or its folder hub) with the weights that runs may load; "
            "in a folder torch, those of torch.hub. Mounted read-only in runs."
        ),
    )
    reserve_gb: float = Field(
        3.0, ge=0, description="GB of free disk below which Reprise halves its caches."
    )

    app_id: int | None = Field(
        None,
        gt=0,
        description="The GitHub App's id. Without one, `reprise serve` shows the setup page.",
    )
    app_slug: str = Field("", description="The App's name in URLs. Its login is <slug>[bot].")
    private_key: SecretStr | None = Field(None, description="The App's private key in PEM.")
    private_key_file: Path | None = Field(None, description="File that contains the private key.")
    webhook_secret: SecretStr | None = Field(
        None,
        description="Webhook secret that GitHub signs deliveries with. "
        "Required once the App is registered.",
    )
    metrics_token: SecretStr | None = Field(
        None,
        description="Bearer token for GET /metrics. Without a token, /metrics is off.",
    )
    log_format: Literal["text", "json"] = Field(
        "text",
        description="json: one object a line, with the ids of the delivery, run and attempt.",
    )
    telemetry: bool = Field(
        False,
        description="Send OpenTelemetry spans by OTLP over HTTP to where the variables OTEL_* say. "
        "Needs reprise[otel].",
    )
    app_file: Path = Field(
        Path("reprise-app.env"),
        description="File with the App's id and webhook secret, written by the setup page.",
    )
    secrets_dir: Path | None = Field(
        None,
        description="Folder with one file per secret setting, such as reprise_database_url.",
    )
    public_url: str = Field("http://localhost:8000", description="Public address of this server.")
    bind: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65_535, description="Port to listen on.")
    database_url: SecretStr = Field(
        SecretStr("sqlite:///reprise.db"),
        description="sqlite:///PATH, or postgresql+psycopg://USER:PASSWORD@HOST/NAME.",
    )
    redis_url: SecretStr = Field(
        SecretStr("redis://localhost:6379/0"),
        description="Redis for the queue. Unused with --embedded.",
    )
    lease_s: float = Field(
        20.0, gt=0, description="Seconds without a heartbeat before another worker takes over."
    )
    grace_s: float = Field(
        20.0,
        ge=0,
        description="Seconds that a stopping worker gives running work before handing it over.",
    )
    write_gap_s: float = Field(
        1.0,
        ge=0,
        description="Seconds between two writes to GitHub, from the answer to the first. GitHub "
        "allows one a second.",
    )
    notify_gap_s: float = Field(
        3.0, ge=0, description="Seconds between two writes that notify people."
    )
    writes_per_minute: int = Field(80, ge=1, description="Maximum writes to GitHub per minute.")
    writes_per_hour: int = Field(500, ge=1, description="Maximum writes to GitHub per hour.")
    daily_runs: int = Field(
        500, ge=0, description="Maximum runs per day (UTC), over all repositories."
    )
    daily_minutes: int = Field(
        2_880, ge=0, description="Maximum compute minutes per day (UTC), over all repositories."
    )
    daily_usd: float = Field(
        0.0, ge=0, description="Maximum model cost per day (UTC) in dollars. 0: no limit."
    )
    run_minutes: int = Field(60, ge=1, description="Maximum minutes per job.")
    reconcile_s: float = Field(
        300.0,
        gt=0,
        description="Seconds between requests to GitHub for deliveries that never arrived.",
    )
    keep_days: int = Field(90, ge=1, description="Days to keep finished runs.")
    link_days: int = Field(
        30,
        ge=1,
        le=3_650,
        description="Days that a link to the page of a private repository's run is good for.",
    )
    sandbox: Literal["auto", "docker", "bwrap", "process"] = Field(
        "auto",
        description="Sandbox of a worker. auto never picks process, which isolates nothing.",
    )

    model_url: str = Field(
        "",
        description="Base URL of an OpenAI-compatible endpoint, such as https://HOST/v1.",
    )
    model_key: SecretStr | None = Field(
        None, description="API key for that endpoint. Sent nowhere else."
    )
    openai_base_url: str = Field(
        "",
        validation_alias="OPENAI_BASE_URL",
        description="Base URL if REPRISE_MODEL_URL is unset.",
    )
    openai_api_key: SecretStr | None = Field(
        None,
        validation_alias="OPENAI_API_KEY",
        description="API key for OPENAI_BASE_URL, or for OpenAI if no base URL is set.",
    )
    model_reader: str = Field(
        "",
        description=(
            "Cheap model that reads bug reports. NAME,NAME: the second is used if the first fails."
        ),
    )
    model_writer: str = Field(
        "",
        description=(
            "Strong model that writes programs. If one of the two is unset, the other does both."
        ),
    )
    model_timeout_s: float = Field(
        600.0, gt=0, description="Seconds that one question may take, with all its retries."
    )
    model_stall_s: float = Field(
        120.0, gt=0, description="Seconds that a streaming model may stay silent."
    )
    model_prices: Annotated[dict[str, tuple[float, float]] | None, NoDecode] = Field(
        None,
        description=(
            'USD per million tokens, input and output, as JSON: {"NAME": [0.5, 2]}. '
            "Models without a price do not count toward dollar limits."
        ),
    )
    model_structured: Literal["auto", "json_schema", "json_object", "plain"] = Field(
        "auto",
        description=(
            "How to request structured answers. auto starts with json_schema and falls back."
        ),
    )

    @field_validator("github_url", "github_api_url", "public_url")
    @classmethod
    def _address(cls, value: str) -> str:
        return plain_address(value, "https://github.example.com")

    @field_validator("model_url")
    @classmethod
    def _endpoint(cls, value: str) -> str:
        return plain_address(value, "https://models.example.com/v1") if value else ""

    @field_validator("model_prices", mode="before")
    @classmethod
    def _table(cls, value: object) -> object:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError):
            raise ValueError('must be JSON such as {"NAME": [0.5, 2]}') from None

    @field_validator("model_prices")
    @classmethod
    def _prices(
        cls, value: dict[str, tuple[float, float]] | None
    ) -> dict[str, tuple[float, float]] | None:
        if any(not 0 <= price < 1_000_000 for pair in (value or {}).values() for price in pair):
            raise ValueError("must contain prices in USD per million tokens")
        return value

    @property
    def model_endpoint(self) -> tuple[str, str]:
        """Base URL and key of the model's endpoint, "" for what is not set.

        OPENAI_API_KEY is never sent to REPRISE_MODEL_URL. Raises UserError for an invalid
        OPENAI_BASE_URL.
        """
        own, shared = _plain(self.model_key), _plain(self.openai_api_key)
        if self.model_url:
            return self.model_url, own
        url = self.openai_base_url
        try:
            address = plain_address(url, "https://models.example.com/v1") if url else ""
        except ValueError as error:
            raise UserError(
                f"OPENAI_BASE_URL is invalid: {error}.", "Correct it, or set REPRISE_MODEL_URL."
            ) from None
        return address or (_OPENAI if own or shared else ""), own or shared

    @property
    def caps(self) -> dict[str, int]:
        """What each part of the cache may take, in bytes."""
        gigabytes = {
            "environments": self.environments_gb,
            "wheels": self.wheels_gb,
            "clones": self.clones_gb,
            "indexes": self.indexes_gb,
            "data": self.data_gb,
        }
        return {name: int(size * 1e9) for name, size in gigabytes.items()}

    @property
    def token(self) -> str:
        """The GitHub token as plain text, "" for none."""
        return _plain(self.github_token)

    @property
    def key(self) -> str:
        """The App's private key as PEM, "" for none. Raises UserError for an unusable file."""
        if text := _plain(self.private_key):
            return pem(text.replace("\\n", "\n"), "REPRISE_PRIVATE_KEY")
        return key_in_file(self.private_key_file) if self.private_key_file is not None else ""

    @property
    def registered(self) -> bool:
        """Whether the App's id, key and webhook secret are all set.

        Raises UserError if only some are: a half-configured App must be neither served nor
        registered again.
        """
        present = {
            "REPRISE_APP_ID": self.app_id is not None,
            "REPRISE_PRIVATE_KEY_FILE": bool(self.key),
            "REPRISE_WEBHOOK_SECRET": bool(_plain(self.webhook_secret)),
        }
        missing = [name for name, is_set in present.items() if not is_set]
        if missing and len(missing) < len(present):
            raise UserError(
                f"The App is only half configured. Missing: {', '.join(missing)}.",
                f"Set it in the environment or in {self.app_file}, "
                "or unset the others to register a new App.",
            )
        return not missing

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be shown."""
        hidden = (
            self.github_token, self.private_key, self.webhook_secret, self.model_key,
            self.openai_api_key, self.metrics_token,
        )  # fmt: skip
        values = [_plain(secret) for secret in hidden]
        with suppress(UserError):  # reported where the key is needed
            values.append(self.key.strip())
        addresses = (_plain(self.database_url), _plain(self.redis_url))
        passwords = [urlsplit(address).password for address in addresses]
        return tuple(value for value in (*values, *passwords) if value)

    @property
    def strong_secrets(self) -> tuple[str, ...]:
        """Those of `secrets` that nobody can guess: what is taken out of text that strangers both
        write and read. A program can print a word list, and the one word that is missing from its
        log would be the password.
        """
        return tuple(value for value in self.secrets if len(value) >= _STRONG)


class WorkflowSettings(BaseSettings):
    """What GitHub Actions tells a job of itself: each field is GITHUB_<NAME> in the environment.
    `output` and `step_summary` are the files that take a step's outputs and its summary.
    """

    model_config = SettingsConfigDict(
        env_prefix="GITHUB_", frozen=True, extra="ignore", env_ignore_empty=True
    )

    event_name: str = ""
    event_path: Path | None = None
    repository: str = ""
    run_id: int = 0
    server_url: str = "https://github.com"
    output: Path | None = None
    step_summary: Path | None = None

    @property
    def run_url(self) -> str:
        """The page of the workflow's run, "" outside of one."""
        if not self.run_id or not self.repository:
            return ""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"


def _plain(secret: SecretStr | None) -> str:
    return secret.get_secret_value().strip() if secret is not None else ""


def load() -> Settings:
    """The settings. Raises UserError naming the invalid variable.

    The environment wins over files in REPRISE_SECRETS_DIR, and those over the App's file.
    """
    folder = os.environ.get("REPRISE_SECRETS_DIR") or None
    if folder and not Path(folder).is_dir():
        raise UserError(
            f"REPRISE_SECRETS_DIR is not a folder: {folder}.",
            "Correct or unset REPRISE_SECRETS_DIR.",
        )
    try:
        settings = Settings(_secrets_dir=folder)
        stored_values = registration(settings.app_file, settings.model_fields_set)
        return Settings(_secrets_dir=folder, **stored_values) if stored_values else settings
    except ValidationError as error:
        raise _invalid(error) from None


def _invalid(error: ValidationError) -> UserError:
    first = error.errors()[0]
    field = "_".join(str(part) for part in first["loc"][:1]).upper()
    name = field if field.startswith("OPENAI_") else f"REPRISE_{field}"
    return UserError(f"{name} is invalid: {first['msg']}.", f"Correct or unset {name}.")


def host() -> dict[str, str]:
    """The host's variables, which configure other tools: pip, uv, proxies, the search path."""
    return dict(os.environ)


def secrets() -> tuple[str, ...]:
    """Values that must never be shown; none if the settings are invalid."""
    try:
        return load().secrets
    except UserError:
        return ()
