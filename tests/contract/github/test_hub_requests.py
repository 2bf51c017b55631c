"""What the adapter sends, with which token and how often, and that its errors tell no secret."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
import traceback
from base64 import b64encode, urlsafe_b64decode
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.app.github.client import GitHubApp
from bot.app.ports import CredentialsRefused, GoneError, Target, Throttled
from bot.kernel.errors import TransientError, UserError
from tests.support.fakes import FrozenClock

TARGET = Target(installation=5, repository="octo/net")
APP, SLUG = 77, "reprise"
COMMENTS = "/repos/octo/net/issues/7/comments"


def claims(request: Any) -> dict[str, Any]:
    """What the App says of itself in its JWT."""
    kind, _, token = request.headers["Authorization"].partition(" ")
    assert kind == "Bearer"
    middle = token.split(".")[1]
    return dict(json.loads(urlsafe_b64decode(middle + "=" * (-len(middle) % 4))))


def test_a_token_is_asked_for_one_repository_and_one_permission_and_kept(script, hub):
    script.on(f"POST {COMMENTS}", 201, {"id": 3})
    script.on("PATCH /repos/octo/net/issues/comments/3", 200, {"id": 3})
    assert hub.create_comment(TARGET, 7, "text") == 3
    hub.update_comment(TARGET, 3, "other")
    mint, first, second = script.requests
    assert mint.line == "POST /app/installations/5/access_tokens"
    assert mint.body == {"repositories": ["net"], "permissions": {"issues": "write"}}
    assert claims(mint)["iss"] == str(APP)
    assert claims(mint)["exp"] - claims(mint)["iat"] <= 600
    assert {each.headers["Authorization"] for each in (first, second)} == {
        "token ghs_minted0001secretsecret"
    }
    assert first.headers["X-GitHub-Api-Version"] == "2022-11-28"
    assert first.body == {"body": "text"}


def test_each_step_has_a_token_of_its_own(script, hub):
    script.on("/permission$", 200, {"permission": "write", "role_name": "maintain"})
    hub.permission(TARGET, "mona")
    hub.file(TARGET, "a.yml")
    hub.clone_token(TARGET)
    script.on("POST .*/reactions", 201, {"id": 1, "content": "eyes"})
    hub.react(TARGET, 7, None, "eyes")
    asked = [
        each.body["permissions"] for each in script.requests if each.path.endswith("/access_tokens")
    ]
    assert asked == [{"metadata": "read"}, {"contents": "read"}, {"issues": "write"}]


def test_a_token_is_minted_anew_five_minutes_before_it_runs_out(script, key):
    clock = FrozenClock(time.time())
    hub = GitHubApp(script.base, APP, key, SLUG, now=clock)
    first = hub.clone_token(TARGET).token
    clock.advance(3600 - 320)
    assert hub.clone_token(TARGET).token == first
    clock.advance(40)
    assert hub.clone_token(TARGET).token != first
    assert script.minted == 2


def test_a_revoked_token_is_minted_anew_once(script, hub):
    hub.clone_token(TARGET)

    def file(request: Any) -> Any:
        if "minted0001" in request.headers["Authorization"]:
            return 401, {}, {"message": "Bad credentials"}
        return (
            200,
            {},
            {"type": "file", "size": 2, "encoding": "base64", "content": b64encode(b"hi").decode()},
        )

    script.call("GET .*/contents/", file)
    assert hub.file(TARGET, "a.txt") == "hi"
    assert script.minted == 2
    script.rules.clear()
    script.on("GET .*/contents/", 401, {"message": "Bad credentials"})
    with pytest.raises(CredentialsRefused, match="Bad credentials"):
        hub.file(TARGET, "a.txt")
    assert script.minted == 3


def test_an_enterprise_server_is_reached_below_its_own_path(script, key):
    hub = GitHubApp(f"{script.base}/api/v3", APP, key, SLUG)
    script.on(f"POST /api/v3{COMMENTS}", 201, {"id": 3})
    script.on("GET /api/v3/app/hook/deliveries", 200, [])
    assert hub.create_comment(TARGET, 7, "text") == 3
    assert hub.hooks(datetime.now(UTC)) == ()
    assert [each.path for each in script.requests] == [
        "/api/v3/app/installations/5/access_tokens",
        f"/api/v3{COMMENTS}",
        "/api/v3/app/hook/deliveries?per_page=100",
    ]
    assert claims(script.requests[2])["iss"] == str(APP)


SECONDARY = {
    "message": "You have exceeded a secondary rate limit. "
    "Please wait a few minutes before you try again."
}


@pytest.mark.parametrize(
    ("status", "headers", "data", "least", "most"),
    [
        (403, {"retry_after": "17"}, SECONDARY, 17, 17),
        (429, {"retry_after": "17"}, None, 17, 17),
        (403, {"retry_after": "0"}, SECONDARY, 1, 1),
        (403, {"retry_after": "999999"}, SECONDARY, 3600, 3600),
        (403, {"retry_after": "Wed, 21 Oct 2026 07:28:00 GMT"}, SECONDARY, 60, 60),
        (403, {}, SECONDARY, 60, 60),
        (429, {}, None, 60, 60),
        (
            403,
            {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "+90"},
            {"message": "API rate limit exceeded"},
            80,
            91,
        ),
        (403, {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "+99999"}, None, 3600, 3600),
        (403, {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "-90"}, None, 1, 1),
        (
            403,
            {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "99999999999999999999"},
            None,
            60,
            60,
        ),
        (403, {"x_ratelimit_remaining": "0"}, None, 60, 60),
        (403, {"x_ratelimit_remaining": "4000", "x_ratelimit_reset": "+3000"}, SECONDARY, 60, 60),
    ],
)
def test_a_limit_is_told_with_its_seconds_and_nothing_is_sent_again(
    script, hub, status, headers, data, least, most
):
    reset = headers.get("x_ratelimit_reset", "")
    if reset[:1] in {"+", "-"}:
        headers = {**headers, "x_ratelimit_reset": str(int(time.time()) + int(reset))}
    script.on(f"POST {COMMENTS}", status, data, **headers)
    began = time.monotonic()
    with pytest.raises(Throttled) as caught:
        hub.create_comment(TARGET, 7, "text")
    assert least <= caught.value.after_s <= most
    assert time.monotonic() - began < 10, "it does not sleep"
    assert script.sent() == [f"POST {COMMENTS}"]


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_post_is_sent_once_whatever_the_server_says(script, hub, status):
    script.on(f"POST {COMMENTS}", status, b"<html>")
    with pytest.raises(TransientError) as caught:
        hub.create_comment(TARGET, 7, "text")
    assert not isinstance(caught.value, Throttled | GoneError)
    assert script.sent() == [f"POST {COMMENTS}"]


def test_a_post_without_an_answer_is_sent_once(script, key):
    script.on(f"POST {COMMENTS}", 0)
    hub = GitHubApp(script.base, APP, key, SLUG, timeout_s=0.3)
    with pytest.raises(TransientError, match="reached"):
        hub.create_comment(TARGET, 7, "text")
    script.rules.clear()
    waiting = threading.Event()
    script.call(f"POST {COMMENTS}", lambda _: (201 if waiting.wait(5) else 500, {}, {"id": 1}))
    with pytest.raises(TransientError, match=r"within 0\.3 s"):
        hub.create_comment(TARGET, 7, "text")
    waiting.set()
    assert script.sent() == [f"POST {COMMENTS}"] * 2


def test_nobody_listens(key):
    hub = GitHubApp("http://127.0.0.1:9", APP, key, SLUG, timeout_s=2)
    with pytest.raises(TransientError, match="reached"):
        hub.permission(TARGET, "mona")


def test_a_redirect_is_not_followed(script, hub):
    script.on(f"POST {COMMENTS}", 307, None, Location=f"{script.base}/elsewhere")
    with pytest.raises(GoneError):
        hub.create_comment(TARGET, 7, "text")
    assert script.sent() == [f"POST {COMMENTS}"]


def test_a_success_that_github_never_gave_is_no_success(script, hub):
    script.on(f"POST {COMMENTS}", 200, b"<html>Sign in to the proxy</html>")
    with pytest.raises(TransientError, match="not GitHub's"):
        hub.create_comment(TARGET, 7, "text")
    script.on("/permission$", 200, ["surprise"])
    with pytest.raises(TransientError, match="not GitHub's"):
        hub.permission(TARGET, "mona")


WRITES = {
    "edit": lambda hub: hub.update_comment(TARGET, 3, "text"),
    "delete": lambda hub: hub.delete_comment(TARGET, 3),
    "react": lambda hub: hub.react(TARGET, 7, None, "eyes"),
    "label": lambda hub: hub.labels(TARGET, 7, "new", (), "ffffff", ""),
    "unlabel": lambda hub: hub.labels(TARGET, 7, "old", ("gone",), "ffffff", ""),
    "redeliver": lambda hub: hub.redeliver(899),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("page", [b"<html>Sign in to the proxy</html>", b"[1]", b'{"ok": 1}', b""])
def test_no_write_takes_a_strangers_answer_for_its_own(script, hub, write, page):
    script.on("GET .*/issues/7/labels", 200, [{"name": "old"}, {"name": "gone"}])
    script.on("GET .*/labels/new", 200, {"name": "new"})
    script.on("(POST|PATCH|DELETE) /(repos|app/hook)/", 200, page)
    if (write, page) == ("redeliver", b'{"ok": 1}'):
        return  # GitHub answers with an object without fields
    with pytest.raises(TransientError, match="not GitHub's"):
        WRITES[write](hub)


def test_a_missing_permission_is_named(script, hub):
    words = {"message": "Resource not accessible by integration"}
    script.on(
        f"POST {COMMENTS}",
        403,
        words,
        X_Accepted_GitHub_Permissions="issues=write; pull_requests=write",
    )
    with pytest.raises(UserError, match="not accessible by integration") as caught:
        hub.create_comment(TARGET, 7, "text")
    assert "issues=write" in caught.value.fix
    script.rules.clear()
    asked = {"message": "The permissions requested are not granted to this installation."}
    script.on("/access_tokens$", 422, asked)
    with pytest.raises(UserError, match="contents=read"):
        hub.clone_token(TARGET)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, "Not Found"),
        (403, "This installation has been suspended"),
        (
            422,
            (
                "There is at least one repository that does not exist "
                "or is not accessible to the parent installation."
            ),
        ),
    ],
)
def test_what_the_installation_no_longer_covers_is_gone(script, hub, status, message):
    script.on("/access_tokens$", status, {"message": message})
    with pytest.raises(GoneError):
        hub.clone_token(TARGET)
    with pytest.raises(GoneError):
        hub.file(TARGET, "a.yml")


@pytest.mark.parametrize(
    ("status", "message"),
    [(404, "Integration not found"), (401, "A JSON web token could not be decoded")],
)
def test_a_wrong_app_id_is_not_taken_for_a_missing_repository(script, hub, status, message):
    script.on("^[A-Z]+ /app/", status, {"message": message})
    with pytest.raises(CredentialsRefused) as caught:
        hub.file(TARGET, "a.yml")
    assert "REPRISE_APP_ID" in caught.value.fix
    with pytest.raises(CredentialsRefused):
        hub.hooks(datetime.now(UTC))


def test_a_repository_of_the_same_name_elsewhere_is_not_taken_for_it(script, hub):
    until = "2099-01-01T00:00:00Z"
    script.on(
        "/access_tokens$",
        201,
        {"token": "t", "expires_at": until, "repositories": [{"full_name": "other/net"}]},
    )
    with pytest.raises(GoneError):
        hub.clone_token(TARGET)


def test_an_unusable_key_is_told_without_being_shown(script):
    key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
    with pytest.raises(CredentialsRefused, match="private key") as caught:
        GitHubApp(script.base, APP, key, SLUG).clone_token(TARGET)
    assert "c2VjcmV0" not in everything(caught.value)
    assert script.requests == []


def everything(error: BaseException) -> str:
    """All that a log could show of an error, and of the errors it holds."""
    told, seen = "", error
    while seen is not None:
        told += "".join(traceback.format_exception(seen)) + repr(seen) + repr(vars(seen))
        seen = seen.__cause__ or seen.__context__  # type: ignore[assignment]
    return told


@pytest.mark.parametrize("status", [0, 302, 401, 403, 404, 422, 429, 500])
def test_errors_and_logs_hold_no_secret_and_no_request(script, hub, key, caplog, status):
    caplog.set_level(logging.DEBUG)
    script.on(
        f"POST {COMMENTS}",
        status,
        {"message": "Bad ghs_minted0001secretsecret"},
        retry_after="soon",
    )
    with pytest.raises((TransientError, UserError)) as caught:
        hub.create_comment(TARGET, 7, "text")
    told = everything(caught.value) + caplog.text
    jwt = (
        next(each for each in script.requests if "/access_tokens" in each.path)
        .headers["Authorization"]
        .split()[1]
    )
    assert caught.value.__context__ is None
    for secret in ("ghs_minted", jwt, jwt.split(".")[2], key.splitlines()[1]):
        assert secret not in told


def test_nothing_of_githubkit_is_imported_before_the_first_request():
    code = (
        "import sys; from bot.app.github.client import GitHubApp; "
        "GitHubApp('https://api.github.com', 1, 'k', 's'); import bot.app.github.writes;"
        "print(sorted({'githubkit', 'hishel', 'jwt', 'httpx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_threads_share_one_hub(script, hub):
    script.on(f"POST {COMMENTS}", 201, {"id": 3})
    threads = [
        threading.Thread(target=hub.create_comment, args=(TARGET, 7, f"text {n}"))
        for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bodies = sorted(each.body["body"] for each in script.requests if each.path == COMMENTS)
    assert bodies == sorted(f"text {n}" for n in range(16))
