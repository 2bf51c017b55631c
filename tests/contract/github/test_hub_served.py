"""The adapter against a whole GitHub: what its tokens can do, and what becomes of an
installation.
"""

from __future__ import annotations

import os
import subprocess
import urllib.error
import urllib.request
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.app.github.client import GitHubApp
from bot.app.ports import CredentialsRefused, GoneError, Throttled
from bot.kernel.errors import TransientError, UserError

MARK = "<!-- reprise:run -->"
NOW = datetime.now(UTC).replace(microsecond=0)


def raw(world: Any, method: str, path: str, token: str) -> int:
    """The status of a request that the adapter would never send."""
    asked = urllib.request.Request(
        f"{world.server.api_url}{path}",
        method=method,
        data=b'{"body": "x"}' if method == "POST" else None,
    )
    asked.add_header("Authorization", f"token {token}")
    asked.add_header("User-Agent", "test")
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_token_can_do_no_more_than_its_step(served):
    served.put_file("a.txt", b"x")
    served.github.create_comment(served.target, served.number, "text")
    (writing,) = served.state.tokens
    reading = served.github.clone_token(served.target).token
    here, other = "/repos/octo/net", "/repos/octo/other"
    served.state.covering("octo/net").repositories.append("octo/other")
    served.state.issue("octo/other", number=1)
    assert raw(served, "POST", f"{here}/issues/7/comments", writing) == 201
    assert raw(served, "GET", f"{here}/contents/a.txt", reading) == 200
    assert raw(served, "GET", f"{here}/contents/a.txt", writing) == 403
    assert raw(served, "POST", f"{here}/issues/7/comments", reading) == 403
    assert raw(served, "POST", f"{other}/issues/1/comments", writing) == 404
    assert raw(served, "GET", f"{other}/contents/a.txt", reading) == 404


def test_git_takes_the_token_to_clone_with_and_no_other(served, tmp_path):
    served.put_file("a.txt", b"x")
    served.github.create_comment(served.target, served.number, "text")
    (writing,) = served.state.tokens
    token = served.github.clone_token(served.target)

    def cloned(username: str, secret: str, name: str) -> int:
        basic = b64encode(f"{username}:{secret}".encode()).decode()
        git = (
            "git",
            "-c",
            f"http.extraHeader=Authorization: Basic {basic}",
            "clone",
            "-q",
            f"{served.server.url}/octo/net.git",
        )
        quiet = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_TERMINAL_PROMPT": "0"}
        return subprocess.run(
            (*git, str(tmp_path / name)), env=quiet, capture_output=True, check=False, timeout=60
        ).returncode

    assert cloned(token.username, token.token, "good") == 0
    assert (tmp_path / "good" / "a.txt").read_text() == "x"
    assert cloned(token.username, writing, "bad") != 0


def test_a_token_that_ran_out_or_was_revoked_is_minted_anew(served):
    made = served.github.create_comment(served.target, served.number, "first")
    (token,) = served.state.tokens.values()
    token.expires_at = NOW - timedelta(minutes=1)
    served.github.update_comment(served.target, made, "second")
    served.state.tokens.clear()
    served.github.update_comment(served.target, made, "third")
    assert [edit.body for edit in served.state.comments[made].history] == [
        "first",
        "second",
        "third",
    ]
    assert sum(1 for each in served.server.requests if each.path.endswith("/access_tokens")) == 3


def test_an_installation_that_ended_or_sleeps_or_grants_less(served):
    installation = served.state.installations[served.target.installation]
    installation.permissions = {"metadata": "read", "issues": "read"}
    with pytest.raises(UserError, match="issues=write"):
        served.github.create_comment(served.target, served.number, "text")
    installation.suspended = True
    with pytest.raises(GoneError):
        served.github.create_comment(served.target, served.number, "text")
    del served.state.installations[served.target.installation]
    with pytest.raises(GoneError):
        served.github.permission(served.target, "mona")


def test_a_ref_is_resolved_to_a_commit(served):
    sha = served.server.commit("octo/net", {"a.txt": "a"}, tag="v1.0/rc")
    for ref in ("main", "v1.0/rc", "refs/tags/v1.0/rc", sha, sha[:10]):
        assert served.github.commit(served.target, ref) == sha
    for ref in ("nowhere", "../../octo/other", "a?b", "", "x" * 40):
        assert served.github.commit(served.target, ref) is None


def test_a_stranger_to_github_is_told_so(served):
    with pytest.raises(CredentialsRefused) as caught:
        GitHubApp(served.server.api_url, 1, served.state.app.key, "reprise").clone_token(
            served.target
        )
    assert "REPRISE_APP_ID" in caught.value.fix


def test_an_organisation_may_have_made_up_a_role(served):
    served.state.collaborator("octo/net", "release-captain", "captain", base="write")
    assert served.github.permission(served.target, "release-captain") == "write"


def test_a_link_or_a_submodule_is_no_file(served):
    served.put_file("a.txt", b"x")
    here = served.server.git.folder(served.state.repository("octo/net"))
    sha = subprocess.run(
        ("git", "rev-parse", "HEAD"), cwd=here, capture_output=True, text=True, check=True
    ).stdout.strip()
    modes = f"M 120000 inline link\ndata 6\n/a.txt\nM 160000 {sha} module\n"
    committer = f"committer O <o@example.com> {int(NOW.timestamp())} +0000"
    commit = f"commit refs/heads/main\n{committer}\ndata 1\nx\nfrom {sha}\n{modes}"
    subprocess.run(("git", "fast-import", "--quiet"), cwd=here, input=commit.encode(), check=True)
    found = {name: served.github.file(served.target, name) for name in ("a.txt", "link", "module")}
    assert found == {"a.txt": "x", "link": None, "module": None}


def test_a_lost_edit_is_sent_once(served):
    made = served.github.create_comment(served.target, served.number, "text")
    served.server.fail("lose", "PATCH")
    with pytest.raises(TransientError):
        served.github.update_comment(served.target, made, "edited")
    assert served.comments() == [(served.login, "edited")]
    assert sum(1 for each in served.server.requests if each.method == "PATCH") == 1


def test_silence_ends_with_the_time_that_was_given(served):
    app = served.state.app
    hub = GitHubApp(served.server.api_url, app.id, app.key, app.slug, timeout_s=2)
    hub.find_comments(served.target, served.number, MARK)
    served.server.fail("hang", "POST", "/comments$", seconds=10)
    with pytest.raises(TransientError, match="did not answer"):
        hub.create_comment(served.target, served.number, "text")
    assert served.tries() == 1


def test_the_hourly_allowance_is_waited_for(served):
    served.server.fail("limit", "GET", "/permission$", seconds=90)
    with pytest.raises(Throttled) as caught:
        served.github.permission(served.target, "mona")
    assert 80 <= caught.value.after_s <= 91


@pytest.mark.node
def test_every_request_is_one_that_github_describes_and_no_step_takes_more_than_it_must(served):
    assert served.described
    hub, where = served.github, served.target
    failed = served.tried("guid-1", 500, NOW)
    steps = {
        "permission": lambda: hub.permission(where, "mona"),
        "file": lambda: hub.file(where, ".github/reprise.yml"),
        "find": lambda: hub.find_comments(where, 7, MARK),
        "create": lambda: hub.create_comment(where, 7, MARK),
        "edit": lambda: hub.update_comment(where, served.state.ours("octo/net", 7)[0].id, "text"),
        "react": lambda: hub.react(where, 7, None, "eyes"),
        "first label": lambda: hub.labels(
            where, 7, "reprise: reproduced", ["reprise: needs info"], "0e8a16", "Ran"
        ),
        "same label": lambda: hub.labels(
            where, 7, "reprise: reproduced", ["reprise: needs info"], "0e8a16", "Ran"
        ),
        "other label": lambda: hub.labels(
            where, 7, "reprise: needs info", ["reprise: reproduced"], "0e8a16", "Ran"
        ),
        "clone": lambda: hub.clone_token(where),
        "hooks": lambda: hub.hooks(NOW - timedelta(days=1)),
        "redeliver": lambda: hub.redeliver(failed),
    }
    taken, minted = {}, {}
    for name, step in steps.items():
        before = len(served.server.requests)
        step()
        asked = [each.path for each in served.server.requests[before:]]
        minted[name] = sum(1 for each in asked if each.endswith("/access_tokens"))
        taken[name] = len(asked) - minted[name]
    assert served.server.violations == []
    assert taken == {
        "permission": 1,
        "file": 1,
        "find": 1,
        "create": 1,
        "edit": 1,
        "react": 1,
        "first label": 4,
        "same label": 1,
        "other label": 5,
        "clone": 0,
        "hooks": 1,
        "redeliver": 1,
    }
    assert [name for name, number in minted.items() if number] == ["permission", "file", "find"]


def test_a_refused_app_is_told_to_ask_for_the_permission(served):
    served.state.covering("octo/net").permissions["issues"] = "read"
    with pytest.raises(UserError) as caught:
        served.github.create_comment(served.target, served.number, "text")
    assert "Grant the App the permission issues=write" in caught.value.fix


def test_a_refused_job_is_told_of_the_permissions_in_its_workflow(with_token):
    (token,) = with_token.state.tokens.values()
    token.permissions["issues"] = "read"
    with pytest.raises(UserError) as caught:
        with_token.github.create_comment(with_token.target, with_token.number, "text")
    assert "`publish` needs contents: read and issues: write" in caught.value.fix
    assert "Grant the App" not in caught.value.fix
