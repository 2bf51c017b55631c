"""Idempotent writes to GitHub: the sticky comment, replies, reactions and labels."""

import hashlib

from bot.models.run import NewRun, Run
from bot.render import labels, sticky
from bot.service.app_context import AppContext
from bot.service.ports.github import Gone, Reaction, Target
from bot.service.ports.store import OurComment

STICKY = "run"


def target(request: NewRun) -> Target:
    """The repository of the run's issue."""
    return Target(installation=request.installation, repository=request.repository.full_name)


def upsert(
    context: AppContext, where: Target, number: int, key: str, body: str, *, revive: bool = True
) -> None:
    """Create or replace our comment with this key. The stored id is tried first, then the marker
    in our own comments: that finds a comment whose response was lost. Unless `revive`, a comment
    that somebody deleted stays deleted.
    """
    digest = hashlib.sha256(body.encode()).hexdigest()
    known = context.store.comment(where.repository, number, key)
    if known is not None:
        if known.digest == digest:
            return
        try:
            context.github.update_comment(where, known.comment, body)
        except Gone:
            if not revive:
                return
            context.store.forget_comment(where.repository, number, key)
        else:
            context.store.put_comment(known.model_copy(update={"digest": digest}))
            return
    found = context.github.find_comment(where, number, sticky.marker(key))
    if found is not None:
        context.github.update_comment(where, found, body)
    comment = found if found is not None else context.github.create_comment(where, number, body)
    context.store.put_comment(
        OurComment(
            repository=where.repository, number=number, key=key, comment=comment, digest=digest
        )
    )


def reply(context: AppContext, where: Target, number: int, key: str, text: str) -> None:
    """Post a separate comment; `text` comes without its marker."""
    upsert(context, where, number, key, f"{sticky.marker(key)}\n{text}")


def react(context: AppContext, request: NewRun, reaction: Reaction) -> None:
    """React to the comment or issue that requested the run."""
    context.github.react(target(request), request.number, request.comment, reaction)


def show(context: AppContext, run: Run, body: str, *, revive: bool = True) -> None:
    """Replace the body of the issue's sticky comment."""
    upsert(context, target(run.request), run.request.number, STICKY, body, revive=revive)


def label(context: AppContext, run: Run, kind: str) -> None:
    """Put the verdict's label on the issue and remove our others."""
    chosen = labels.label_of(kind)
    if chosen is None or run.request.job.issue.number is None:
        return
    others = tuple(name for name in labels.OURS if name != chosen.name)
    where = target(run.request)
    context.github.labels(
        where, run.request.number, chosen.name, others, chosen.colour, chosen.description
    )


def plan_key(run: Run) -> str:
    """The key of the comment that shows a waiting plan."""
    return f"plan:{run.request.plan[:12]}"


def close_plan(context: AppContext, run: Run, text: str) -> None:
    """Replace the comment of a plan that no longer waits, if there is one."""
    where, number, key = target(run.request), run.request.number, plan_key(run)
    if context.store.comment(where.repository, number, key) is not None:
        upsert(context, where, number, key, f"{sticky.marker(key)}\n{text}", revive=False)
