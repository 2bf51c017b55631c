"""What the host decides, from REPRISE_* environment variables: the only reader of the environment."""

from __future__ import annotations

import os
from pathlib import Path
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

    @field_validator("github_url", "github_api_url")
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
        return (self.token,) if self.token else ()


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
