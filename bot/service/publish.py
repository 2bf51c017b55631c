"""Writes to GitHub so that doing it twice is doing it once: the sticky comment, replies, reactions and labels."""

from __future__ import annotations

import hashlib

from bot.models.run import NewRun, Run
from bot.render import labels, sticky
from bot.service.office import Office
from bot.service.ports import Gone, OurComment, Reaction, Target

STICKY = "run"


def target(request: NewRun) -> Target:
    """Where the run's issue is."""
    return Target(installation=request.installation, repository=request.repository.full_name)


def upsert(office: Office, where: Target, number: int, key: str, body: str, *, revive: bool = True) -> None:
    """Write or replace the comment of ours with this key. The stored id is tried first, then the marker in comments of our
    own: a comment whose answer was lost is found again. With `revive` False one that somebody deleted stays deleted.
    """
    digest = hashlib.sha256(body.encode()).hexdigest()
    known = office.store.comment(where.repository, number, key)
    if known is not None:
        if known.digest == digest:
            return
        try:
            office.github.update_comment(where, known.comment, body)
        except Gone:
            if not revive:
                return
            office.store.forget_comment(where.repository, number, key)
        else:
            office.store.put_comment(known.model_copy(update={"digest": digest}))
            return
    found = office.github.find_comment(where, number, sticky.marker(key))
    if found is not None:
        office.github.update_comment(where, found, body)
    comment = found if found is not None else office.github.create_comment(where, number, body)
    office.store.put_comment(OurComment(repository=where.repository, number=number, key=key, comment=comment, digest=digest))


def reply(office: Office, where: Target, number: int, key: str, text: str) -> None:
    """A short comment of its own; `text` is without its marker."""
    upsert(office, where, number, key, f"{sticky.marker(key)}\n{text}")


def react(office: Office, request: NewRun, reaction: Reaction) -> None:
    """React to whatever asked for the run."""
    office.github.react(target(request), request.number, request.comment, reaction)


def show(office: Office, run: Run, body: str, *, revive: bool = True) -> None:
    """Put a body into the issue's sticky comment."""
    upsert(office, target(run.request), run.request.number, STICKY, body, revive=revive)


def label(office: Office, run: Run, kind: str) -> None:
    """Put the verdict's label on the issue, and take our others off."""
    chosen = labels.label_of(kind)
    if chosen is None or run.request.job.issue.number is None:
        return
    others = tuple(name for name in labels.OURS if name != chosen.name)
    where = target(run.request)
    office.github.labels(where, run.request.number, chosen.name, others, chosen.colour, chosen.description)


def plan_key(run: Run) -> str:
    """The key of the comment that shows a waiting plan."""
    return f"plan:{run.request.plan[:12]}"


def close_plan(office: Office, run: Run, text: str) -> None:
    """Bring the comment of a plan up to date, where there is one: nothing waits there any longer."""
    where, number, key = target(run.request), run.request.number, plan_key(run)
    if office.store.comment(where.repository, number, key) is not None:
        upsert(office, where, number, key, f"{sticky.marker(key)}\n{text}", revive=False)
