"""An outsider's request, laid out for whoever may approve it: every program that would run, where, and what will count."""

from __future__ import annotations

from bot.models.draft import Draft
from bot.models.environment import EnvironmentSpec, Requirement
from bot.models.job import PROOFS, Options, Proof
from bot.models.run import Run
from bot.render import links, scripts, words
from bot.render.comment import UNFOLDED, scrubbed
from bot.render.folds import LIMIT, Block, Fold, assemble
from bot.render.requests import choices
from bot.render.sanitize import bullets, code_span, prose, shorten_paths
from bot.rules.verbs import PREFIX

HASH = 12
_ROWS = 40
_SIGNS = 6
_MARKER_ROOM = 300
_DONE: dict[Proof, str] = {
    "control": "a control (the program where it should not fail)",
    "bisect": "a bisection (the program with other releases of {package})",
    "minimize": "a smaller program (ever fewer parts of this one)",
}


def waiting(draft: Draft, run: Run, *, page: str) -> str:
    """The comment without its marker. `page` is the address of the run's page, "" for none."""
    approval = run.request.plan[:HASH]
    draft = scrubbed(draft)
    who = code_span(run.request.requester, limit=60) or "Somebody"
    top = [
        f"**Waiting for approval.** {who} asked to run this report; nothing has been run so far.",
        "",
        f"To let exactly this run, someone with write permission comments `/reproduce approve {approval}`.",
        "",
        *_counts(draft),
        *_chosen(run),
        *_proofs(run.request.job.options),
    ]
    shown = scripts.in_sight(draft.script) if not draft.others else []
    below = (*_programs(draft, bool(shown)), *_environment(draft.spec))
    shown = shown if sum(map(bool, top)) + len(shown) + len(below) + 1 <= UNFOLDED else []
    below = (*_programs(draft, bool(shown)), *_environment(draft.spec))
    ends = [f"Plan {code_span(approval)}", *([links.own("this run", page)] if page else []), "`/reproduce cancel` withdraws it"]
    foot = f"<sub>Read off the report, without running any of it. {' · '.join(ends)}</sub>"
    head = "\n".join([*top, *shown]).rstrip("\n")
    return assemble(head, below, foot, LIMIT - _MARKER_ROOM, "in the report itself")


def approved(run: Run) -> str:
    """What the comment of a plan says once it may run."""
    who, by = code_span(run.request.requester, limit=60), code_span(run.approved_by, limit=60)
    return f"The run that {who} asked for was approved by {by}. Its outcome is in the comment with the verdict.\n"


def withdrawn(run: Run) -> str:
    """What it says when it will not run."""
    who, by = code_span(run.request.requester, limit=60), code_span(run.cancelled_by, limit=60)
    return f"The run that {who} asked for was withdrawn by {by} before it was approved; nothing was run.\n"


def _counts(draft: Draft) -> list[str]:
    if draft.signature is None:
        return ["What will count as the reported failure could not be read off the report.", ""]
    rows = words.signature_rows(draft.signature)
    lines = [f"- {prose(what, limit=60)}: {code_span(shorten_paths(value))}" for what, value in rows[:_SIGNS]]
    lines += [f"- and {len(rows) - _SIGNS} more"] if len(rows) > _SIGNS else []
    return ["What will count as the reported failure:", "", *lines, ""]


def _chosen(run: Run) -> list[str]:
    chosen = choices(run.request.job.options)
    as_ = f" as `{PREFIX} {run.request.proof}`" if run.request.proof else ""
    with_ = f" with {', '.join(code_span(each, limit=80) for each in chosen[:8])}" if chosen else ""
    return [f"Asked for{as_}{with_}.", ""] if as_ or with_ else []


def _proofs(options: Options) -> list[str]:
    """What is run besides, once the failure was met: the same program, or less of it."""
    wanted = [_DONE[proof] for proof in PROOFS if proof not in options.without]
    if not wanted:
        return []
    package = code_span(options.package or "", limit=80) or "the package under test"
    said = "; ".join(wanted).format(package=package)
    return [f"If the failure is reproduced, then, for {options.proof_minutes:g} minutes at most: {said}.", ""]


def _programs(draft: Draft, shown: bool) -> tuple[Fold, ...]:
    """All that would be tried: an approval is given to all of it."""
    several = bool(draft.others)
    numbered = enumerate(draft.scripts, 1)
    folds = [scripts.folded(script, f"Script {number}" if several else "Script") for number, script in numbered]
    mends = [f"{mend.what} ({mend.why})" for script in draft.scripts for mend in script.mends]
    changes = bullets(map(shorten_paths, dict.fromkeys(mends)))
    changed = (Fold("Changes to the reporter's program", (Block("\n".join(changes)),)),) if changes else ()
    return (*(() if shown else folds), *changed)


def _environment(spec: EnvironmentSpec | None) -> tuple[Fold, ...]:
    if spec is None:
        return ()
    rows = [_row(each) for each in spec.requirements]
    more = [f"| … | {len(rows) - _ROWS} more | | |"] if len(rows) > _ROWS else []
    table = ["| Package | Version | Decided by | |", "|---|---|---|---|", *rows[:_ROWS], *more]
    blocks = [Block("\n".join(table))] if rows else []
    said = []
    if spec.exclude_newer is not None:
        said.append(f"Everything else is the newest release before {spec.exclude_newer.date().isoformat()}.")
    if spec.repo is not None:
        at = f" at {code_span(spec.repo.ref, limit=120)}" if spec.repo.ref else ""
        said.append(f"The repository is installed from a clone of {code_span(spec.repo.url, limit=200)}{at}.")
    said += [f"It runs on a {'GPU' if spec.device == 'gpu' else 'CPU'} in this host's sandbox, which holds no secret."]
    blocks.append(Block(" ".join(said)))
    named = ", ".join(f"{each.name}{each.specifier}" for each in spec.requirements[:3])
    return (Fold(", ".join(filter(None, [f"Environment: Python {spec.python}", named])), tuple(blocks)),)


def _row(each: Requirement) -> str:
    name = f"{each.name}[{','.join(each.extras)}]" if each.extras else each.name
    reason = prose(shorten_paths(each.reason), limit=200, cell=True)
    version = code_span(each.specifier, limit=80, cell=True) or "any"
    return f"| {code_span(name, limit=120, cell=True)} | {version} | {words.RUNGS[each.rung]} | {reason} |"
