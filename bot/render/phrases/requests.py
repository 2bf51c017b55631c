"""Who requested a run and how, and its current state, in words."""

from bot.models.job import ReproduceIssue, RunLimits
from bot.models.repair import RepairRequest
from bot.models.run import NewRun, Run
from bot.ports import Progress, Stage
from bot.render.document import Code, Inline
from bot.rules.verbs import PREFIX
from bot.text.sanitize import clip, one_line

STEPS: tuple[tuple[str, tuple[Stage, ...]], ...] = (
    ("Read the bug report", ("intake", "signature")),
    ("Build its environment", ("environment",)),
    ("Find a program that fails", ("candidates", "search")),
    ("Confirm with fresh runs", ("confirm",)),
    ("Prove the failure: control, bisection, minimal script", ("control", "bisect", "minimize")),
    ("Write the verdict", ("report", "diagnose", "repair")),
)
"""The stages, as readers see them."""

_PROOFS = {"control": "control", "bisect": "bisection", "minimize": "minimizing"}
_DEFAULTS, _SHOWN, _NAME, _LINE = RunLimits(), 8, 80, 160


def asked(run: Run) -> tuple[Inline, ...]:
    """Who requested a run, how, with which options, and who approved it."""
    who = name(run.request.requester)
    how: dict[str, tuple[Inline, ...]] = {
        "opened": ("Started when ", who, " opened the issue"),
        "labeled": ("Requested by ", who, " with a label"),
    }
    by = run.approved_by
    approved = (", approved by ", name(by)) if by else ()
    request = how.get(run.request.trigger, ("Requested by ", who))
    return (*request, *chosen(run.request), *approved, ".")


def unposted(run: Run) -> str:
    """Why a verdict stands on the run's page only."""
    return clip(f"could not be posted on the issue: {one_line(run.error).rstrip('.')}", 300)


def chosen(request: NewRun) -> tuple[Inline, ...]:
    """The command and its options: " as `/reproduce bisect` with `torch=2.1.0`"."""
    command = f" as `{PREFIX} {request.proof}`" if request.proof else ""
    options = options_of(request.job)
    parts: list[Inline] = [command] if command else []
    for number, option in enumerate(options[:_SHOWN]):
        parts += [", " if number else " with ", Code(clip(one_line(option), _NAME))]
    more = len(options) - _SHOWN
    return (*parts, f" and {more} more") if more > 0 else tuple(parts)


def name(login: str) -> Inline:
    """A person, as code: a bare login would notify them."""
    return Code(clip(one_line(login), 60)) if login.strip() else "someone"


def options_of(job: ReproduceIssue) -> list[str]:
    """The options that differ from the defaults, as they are written in a command."""
    environment, runs, timeout = job.environment, job.limits.max_runs, job.limits.timeout_s
    repair = job.training.repair if job.training is not None else None
    pairs = {
        "python": environment.python,
        "device": environment.device if environment.device != "cpu" else None,
        "ref": environment.ref,
        "seed": job.limits.seed or None,
        "runs": runs if runs != _DEFAULTS.max_runs else None,
        "package": job.proof.package,
        "metric": repair.metric if repair else None,
        "budget": f"{repair.budget:g}x" if repair and repair != RepairRequest() else None,
        "timeout": f"{timeout:g}" if timeout != _DEFAULTS.timeout_s else None,
    }
    pins = [pin.replace("==", "=", 1) for pin in environment.pins]
    return pins + [f"{key}={value}" for key, value in pairs.items() if value]


def elapsed(seconds: float) -> str:
    """Elapsed time, so coarse that a comment is not edited for the clock alone."""
    minutes = int(seconds // 60)
    minutes -= minutes % (5 if minutes >= 10 else 1)
    if not minutes:
        return "less than a minute so far"
    hours = f"{minutes // 60} h {minutes % 60}" if minutes >= 120 else str(minutes)
    return f"{hours} min so far"


def steps(run: Run, *, waiting: bool) -> tuple[tuple[str, str, str], ...]:
    """The steps of a run as (state, title, current activity)."""
    now = -1 if waiting else step(run.stage)
    return tuple(
        ("now", title, present(run)) if at == now else ("done" if at < now else "later", title, "")
        for at, (title, _) in enumerate(STEPS)
    )


def step(stage: str) -> int:
    """Which of STEPS a stage belongs to; an unknown one is the first."""
    return next((at for at, (_, stages) in enumerate(STEPS) if stage in stages), 0)


def present(run: Run) -> str:
    """The current activity, without its stage but with the name of its proof."""
    text = run.progress.removeprefix(f"{run.stage}:").strip()
    text = clip("" if text == run.stage else text, _LINE)
    proof = _PROOFS.get(run.stage, "")
    return text if text.startswith(proof) else f"{proof}: {text}" if text else proof


def progress_line(progress: Progress) -> str:
    """One line on the current activity; it names its stage once."""
    stage = progress.stage
    text = progress.text.removeprefix(f"{stage}: ")
    text = text.removeprefix("minimizing: ") if stage == "minimize" else text
    text = clip(one_line(text), _LINE)
    if not progress.total:
        return f"{stage}: {text}"
    if stage == "minimize":
        return f"{stage}: {text} ({progress.done} of at most {progress.total} programs tried)"
    if text == f"run {progress.done}":
        return f"{stage}: {text} of at most {progress.total}"
    if stage == "bisect":
        return f"{stage}: {text}, step {progress.done} of at most {progress.total}"
    return f"{stage}: {text} ({progress.done} of {progress.total})"
