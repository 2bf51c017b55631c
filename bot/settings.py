"""What the host decides, from REPRISE_* environment variables: the only reader of the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from platformdirs import user_cache_path
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from bot.errors import UserError


def _cache() -> Path:
    """As root a place that the unprivileged user of a sandbox can reach; root's home is closed to it."""
    return Path("/var/cache/reprise") if os.geteuid() == 0 else user_cache_path("reprise")


class Settings(BaseSettings):
    """Every field can be set as REPRISE_<NAME>; none has to be."""

    model_config = SettingsConfigDict(env_prefix="REPRISE_", frozen=True, extra="ignore")

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
    public_url: str = Field("http://localhost:8000", description="Where this server is reached from outside.")
    bind: str = Field("127.0.0.1", description="The address that the server listens on.")
    port: int = Field(8000, ge=0, le=65_535, description="The port that the server listens on.")
    database_url: SecretStr = Field(
        SecretStr("sqlite:///reprise.db"), description="sqlite:///PATH, or postgresql+psycopg://USER:PASSWORD@HOST/NAME."
    )
    redis_url: SecretStr = Field(SecretStr("redis://localhost:6379/0"), description="The queue, unless --embedded.")
    lease_s: float = Field(20.0, gt=0, description="A worker silent for this long has died; another one goes on.")
    write_gap_s: float = Field(1.0, ge=0, description="Seconds between two writes to GitHub; its own limit is one a second.")
    notify_gap_s: float = Field(3.0, ge=0, description="Seconds between two writes that notify people.")
    writes_per_minute: int = Field(80, ge=1, description="Most writes to GitHub a minute.")
    writes_per_hour: int = Field(500, ge=1, description="Most writes to GitHub an hour.")
    daily_runs: int = Field(500, ge=0, description="Most runs a day (UTC), over all repositories.")
    daily_minutes: int = Field(2_880, ge=0, description="Most minutes of compute a day (UTC), over all repositories.")
    run_minutes: int = Field(60, ge=1, description="Most minutes one run may take.")
    reconcile_s: float = Field(300.0, gt=0, description="How often GitHub is asked for deliveries that never arrived.")
    keep_days: int = Field(90, ge=1, description="How long finished runs are kept.")
    sandbox: Literal["auto", "docker", "bwrap", "process"] = Field(
        "auto", description="What a worker runs code in; auto never takes process, which isolates nothing."
    )

    @field_validator("github_url", "github_api_url", "public_url")
    @classmethod
    def _address(cls, value: str) -> str:
        parts = urlsplit(value)
        local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
        if parts.scheme != "https" and not (parts.scheme == "http" and local):
            raise ValueError("must be an https:// address")
        if not parts.hostname or parts.username or parts.query or parts.fragment:
            raise ValueError("must be a plain address such as https://github.example.com")
        return value.rstrip("/")

    @property
    def token(self) -> str:
        """The token as plain text, "" when there is none."""
        return self.github_token.get_secret_value().strip() if self.github_token is not None else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be shown."""
        hidden = (self.github_token, self.private_key, self.webhook_secret)
        values = [each.get_secret_value().strip() for each in hidden if each is not None]
        passwords = [urlsplit(url.get_secret_value()).password for url in (self.database_url, self.redis_url)]
        return tuple(value for value in (*values, *passwords) if value)


def load() -> Settings:
    """The settings, or a sentence on the variable that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = "REPRISE_" + "_".join(str(part) for part in first["loc"]).upper()
        raise UserError(f"{name} is not usable: {first['msg']}.", f"Correct or unset {name}.") from None


def host() -> dict[str, str]:
    """The host's own variables, for what other tools are configured by: pip, uv, proxies, the search path."""
    return dict(os.environ)
