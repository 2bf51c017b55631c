"""What a browser is shown: an issue with its comments, and the page that makes an App from a
manifest.
"""

from __future__ import annotations

import html
import json
import secrets
from functools import cache
from urllib.parse import parse_qs, urlencode, urlsplit

from markdown_it import MarkdownIt

from tests.support.server.call import Reply, World
from tests.support.server.records import Comment, Reaction, Repository, stamp

# Comments may hold any HTML: nothing of it runs, nothing is loaded.
_POLICY = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
}
_EMOJI = {
    "+1": "👍",
    "-1": "👎",
    "laugh": "😄",
    "confused": "😕",
    "heart": "❤️",
    "hooray": "🎉",
    "eyes": "👀",
    "rocket": "🚀",
}
_STYLE = """
body{font:14px/1.5 -apple-system,"Segoe UI","Noto Sans",Helvetica,Arial,sans-serif;color:#1f2328;margin:24px auto;
max-width:920px}h1{font-size:26px;font-weight:400}.box{border:1px solid #d1d9e0;border-radius:6px;margin:16px 0}
.box>header{background:#f6f8fa;
border-bottom:1px solid #d1d9e0;padding:8px 16px;color:#59636e;border-radius:6px 6px 0 0}.box>div{padding:16px}
.box b{color:#1f2328}
.label{border-radius:2em;padding:0 8px;font-size:12px;font-weight:500;border:1px solid #0002}.tag{border:1px solid #d1d9e0;
border-radius:2em;padding:0 7px;font-size:12px;margin-left:4px}
pre,code{font:12px/1.45 ui-monospace,"SFMono-Regular",Menlo,Consolas,"Liberation Mono",monospace}
pre{background:#f6f8fa;border-radius:6px;padding:16px;overflow:auto}
:not(pre)>code{background:#818b981f;border-radius:6px;padding:.2em .4em}
table{border-collapse:collapse;margin:0 0 16px}
td,th{border:1px solid #d1d9e0;padding:6px 13px}tr:nth-child(2n) td{background:#f6f8fa}
blockquote{border-left:.25em solid #d1d9e0;color:#59636e;margin:0 0 16px;padding:0 1em}a{color:#0969da}summary{cursor:pointer}
"""


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def issue_page(world: World, owner: str, name: str, number: str) -> Reply:
    """An issue as people see it."""
    here = world.state.repositories.get(f"{owner}/{name}".lower())
    issue = here.issues.get(int(number)) if here is not None and number.isdigit() else None
    if here is None or issue is None:
        return _page("Not found", "<h1>404</h1>", 404)
    labels = " ".join(_label(here, each) for each in issue.labels)
    boxes = [_box(issue.author, stamp(issue.created_at), issue.body or "", issue.reactions)]
    boxes += [_comment(each) for each in world.state.conversation(here.full_name, issue.number)]
    title = html.escape(issue.title)
    return _page(
        title,
        f"<h1>{title} <span style='color:#59636e'>#{issue.number}</span></h1><p>{labels}</p>{''.join(boxes)}",
    )


def _comment(one: Comment) -> str:
    edited = " · edited" if len(one.history) > 1 else ""
    return _box(one.author, stamp(one.created_at) + edited, one.body, one.reactions)


def _box(author: str, when: str, body: str, reactions: list[Reaction]) -> str:
    bot = "<span class=tag>bot</span>" if author.endswith("[bot]") else ""
    counted = {
        each.content: sum(1 for one in reactions if one.content == each.content)
        for each in reactions
    }
    shown = " ".join(
        f"<span class=tag>{_EMOJI[name]} {name} {count}</span>" for name, count in counted.items()
    )
    who = html.escape(author.removesuffix("[bot]"))
    return f"<div class=box><header><b>{who}</b>{bot} {when}</header><div>{_markdown().render(body)}{shown}</div></div>"


def _label(here: Repository, name: str) -> str:
    color = here.labels[name.lower()].color
    return f"<span class=label style='background:#{color}'>{html.escape(name)}</span>"


def _page(title: str, body: str, status: int = 200) -> Reply:
    head = f"<!doctype html><html><head><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style></head>"
    return Reply(
        status,
        raw=f"{head}<body>{body}</body></html>".encode(),
        headers=dict(_POLICY),
        media="text/html; charset=utf-8",
    )


def new_app(world: World, form: str, state: str) -> Reply:
    """Somebody sent a manifest here and says yes to it: back to its redirect address with a
    code.
    """
    try:
        manifest = json.loads(parse_qs(form).get("manifest", [""])[0])
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or not all(
        isinstance(manifest.get(key), str) for key in ("url", "redirect_url")
    ):
        return _page("Invalid", "<h1>Invalid GitHub App configuration</h1>", 422)
    code = secrets.token_hex(20)
    world.state.codes[code] = manifest
    glue = "&" if urlsplit(manifest["redirect_url"]).query else "?"
    query = urlencode({"code": code, **({"state": state} if state else {})})
    return Reply(
        302,
        raw=b"",
        headers={"location": f"{manifest['redirect_url']}{glue}{query}"},
        media="text/html",
    )
