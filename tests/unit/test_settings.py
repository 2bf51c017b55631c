"""Settings: the environment, files of secrets and the App's file, which wins, and what a half
configured App is told.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.kernel.errors import UserError
from bot.kernel.settings import Settings, load

PEM = "-----BEGIN RSA PRIVATE KEY-----\nTU9DSw==\n-----END RSA PRIVATE KEY-----\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in (
        "APP_ID",
        "APP_SLUG",
        "PRIVATE_KEY",
        "PRIVATE_KEY_FILE",
        "WEBHOOK_SECRET",
        "APP_FILE",
        "SECRETS_DIR",
    ):
        monkeypatch.delenv(f"REPRISE_{name}", raising=False)
    return tmp_path


def app_file(folder: Path, **more: str) -> Path:
    (folder / "the.pem").write_text(PEM)
    lines = {
        "APP_ID": "42",
        "APP_SLUG": "reprise",
        "PRIVATE_KEY_FILE": "the.pem",
        "WEBHOOK_SECRET": "s3cret-of-42",
        **more,
    }
    path = folder / "reprise-app.env"
    path.write_text("".join(f"REPRISE_{name}={value}\n" for name, value in lines.items()))
    return path


def test_without_anything_the_app_is_not_registered(here: Path) -> None:
    settings = load()
    assert not settings.registered
    assert settings.key == ""


def test_the_app_file_is_read_and_its_key_lies_beside_it(
    here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRISE_APP_FILE", str(app_file(tmp_path_factory.mktemp("elsewhere"))))
    settings = load()
    assert (settings.app_id, settings.app_slug, settings.key, settings.registered) == (
        42,
        "reprise",
        PEM,
        True,
    )
    assert {"s3cret-of-42", PEM.strip()} <= set(settings.secrets)


def test_the_environment_wins_over_the_app_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app_file(here)
    monkeypatch.setenv("REPRISE_APP_ID", "7")
    monkeypatch.setenv("REPRISE_PRIVATE_KEY", PEM.replace("TU9DSw==", "RU5W").replace("\n", "\\n"))
    settings = load()
    assert settings.app_id == 7
    assert settings.key == PEM.replace("TU9DSw==", "RU5W")


def test_the_app_file_can_set_nothing_else(here: Path) -> None:
    app_file(
        here,
        GITHUB_API_URL="https://attacker.example",
        PUBLIC_URL="https://attacker.example",
        SANDBOX="process",
    )
    settings = load()
    fresh = Settings()
    assert (settings.github_api_url, settings.public_url, settings.sandbox) == (
        fresh.github_api_url,
        fresh.public_url,
        fresh.sandbox,
    )


def test_secrets_come_from_files_too(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = here / "secrets"
    secrets.mkdir()
    (secrets / "reprise_database_url").write_text(
        "postgresql+psycopg://reprise:pass-of-the-file@db/reprise\n"
    )
    (secrets / "reprise_webhook_secret").write_text("of the folder\n")
    app_file(here)
    monkeypatch.setenv("REPRISE_SECRETS_DIR", str(secrets))
    settings = load()
    assert (
        settings.database_url.get_secret_value()
        == "postgresql+psycopg://reprise:pass-of-the-file@db/reprise"
    )
    assert settings.webhook_secret is not None
    assert settings.webhook_secret.get_secret_value() == "of the folder"
    assert "pass-of-the-file" in settings.secrets


def test_what_can_be_guessed_is_not_taken_out_of_public_text(here: Path) -> None:
    given = {"database_url": "postgresql+psycopg://reprise:postgres@db/reprise"}
    settings = Settings(**given, metrics_token="f3b1c0de" * 2)
    assert settings.secrets == ("f3b1c0de" * 2, "postgres")
    assert settings.strong_secrets == ("f3b1c0de" * 2,)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (
            {"REPRISE_APP_ID": "42"},
            "Missing: REPRISE_PRIVATE_KEY_FILE, REPRISE_WEBHOOK_SECRET.",
        ),
        ({"REPRISE_APP_ID": "42", "REPRISE_PRIVATE_KEY": PEM}, "Missing: REPRISE_WEBHOOK_SECRET."),
        (
            {"REPRISE_APP_ID": "42", "REPRISE_PRIVATE_KEY": PEM, "REPRISE_WEBHOOK_SECRET": " "},
            "Missing: REPRISE_WEBHOOK_SECRET",
        ),
        (
            {"REPRISE_WEBHOOK_SECRET": "abcdef"},
            "Missing: REPRISE_APP_ID, REPRISE_PRIVATE_KEY_FILE.",
        ),
        (
            {"REPRISE_PRIVATE_KEY_FILE": "absent.pem"},
            "REPRISE_PRIVATE_KEY_FILE: cannot read absent.pem",
        ),
        ({"REPRISE_PRIVATE_KEY": "no pem"}, "REPRISE_PRIVATE_KEY: its value is not a private key"),
    ],
)
def test_a_half_configured_app_is_told_what_is_missing(
    here: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], named: str
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=named) as caught:
        _ = load().registered
    assert caught.value.fix
    assert "abcdef" not in f"{caught.value} {caught.value.fix}"


def test_a_file_that_cannot_be_read_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "reprise-app.env").write_bytes(b"REPRISE_APP_SLUG=\xff\xfe\n")
    with pytest.raises(UserError, match=r"Cannot read the App.s file reprise-app\.env"):
        load()
    monkeypatch.setenv("REPRISE_SECRETS_DIR", str(here / "absent"))
    with pytest.raises(UserError, match="REPRISE_SECRETS_DIR"):
        load()
