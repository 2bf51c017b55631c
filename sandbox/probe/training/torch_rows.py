"""Which rows a model is trained on and judged by: the same batch again and again, one row that
fills a batch, rows in both parts, a column that is the target, and labels that contradict each
other.
"""

from . import numbers, records
from .core import contained
from .row_labels import RowLabels
from .torch_loops import LOOPS

_MOST_ROWS, _MOST_BATCHES, _MOST_JUDGED, _MOST_COLUMNS = 1024, 24, 40, 256
_MOST_COMPARED, _MOST_LABELS, _LEAST_PLACES, _MOSTLY = 16, 60, 4, 0.9
_LEAST_ROWS, _LEAST_COLUMNS, _ALIKE = 24, 3, 1e-6


class Rows:
    """The hashes of rows, by the parts that they came in."""

    def __init__(self):
        self.trained, self.batches = set(), 0
        self.trained_rows = 0
        self.judged = []
        self.prints = set()
        self.share = 1.0
        self.columns = []
        self.looked_columns = 0
        self.shifted = self.sequences = 0
        self.labels = []
        self.decoded = self.copied = 0
        self.pairs = RowLabels()


ROWS = Rows()


def _hashes(tensor):
    """One number for each of some rows, the same for the same row."""
    torch = records.torch()
    rows = tensor.detach()[:_MOST_ROWS].reshape(min(len(tensor), _MOST_ROWS), -1)
    columns = rows[:, :: max(1, -(-rows.shape[1] // _MOST_COLUMNS))].cpu().double()
    weights = torch.cos(torch.arange(1, columns.shape[1] + 1, dtype=torch.float64) ** 2)
    return [round(value, 9) for value in (columns * weights).sum(1).tolist()]


@contained("rows")
def look(tensor, targets, compared, *, is_alone):
    """Note the rows of a training step, what each of its losses was `compared` with, and whether
    the model has no other inputs.
    """
    _look_at_both(compared)
    if tensor is None or not tensor.dim() or not len(tensor):
        return
    if targets is not None:
        _look_at_labels(tensor, targets.detach())
    if ROWS.batches >= _MOST_BATCHES:
        return
    ROWS.batches += 1
    hashes = _hashes(tensor)
    ROWS.prints.add(tuple(hashes[:_MOST_COMPARED]))  # the last batch of an epoch may be shorter
    ROWS.pairs.add_batch(hashes)
    if tensor.dim() >= 2 and tensor.is_floating_point():
        rows = tensor.detach()[:_MOST_ROWS].reshape(len(hashes), -1)
        ROWS.pairs.add_levels(rows.double().mean(1).tolist())
        ROWS.trained_rows += len(hashes)
        ROWS.trained.update(hashes)
        is_question = targets is not None and not _has_other_labels(targets.detach(), compared)
        if is_alone and is_question and _is_continuous(tensor.detach()):
            ROWS.pairs.add_labels(hashes, _labels_of(tensor, targets.detach()))
    if getattr(tensor, "_base", None) is not None:
        ROWS.share = min(ROWS.share, tensor.numel() / max(1, tensor._base.numel()))
    if targets is not None and ROWS.looked_columns < 3:
        _look_for_targets(tensor.detach(), targets.detach())


def _has_other_labels(targets, compared):
    """Whether another loss of the step asks something else of the rows: their domain, say."""
    flat = targets.reshape(-1)
    return any(
        one.numel() == len(flat) and bool((one.reshape(-1) != flat).any()) for one in compared
    )


def _look_at_labels(tensor, targets):
    """Which classes a batch has; of codes, whether each target is the code that follows."""
    if not tensor.is_floating_point() and tensor.dim() == 2 and targets.numel() == tensor.numel():
        follow = targets.reshape(tensor.shape)
        ROWS.sequences += 1
        for codes, next_codes in ((tensor, follow), (tensor.T, follow.T)):
            if codes.shape[1] >= _LEAST_PLACES:
                alike = (codes[:, 1:] == next_codes[:, :-1]).float().mean()
                ROWS.shifted += float(alike) > _MOSTLY
    labels = _labels_of(tensor, targets)
    if labels and len(ROWS.labels) < _MOST_LABELS:
        ROWS.labels.append(labels)


@contained("rows")
def look_at_codes(codes, targets):
    """Whether the second codes of a step are its targets, each at its own place."""
    if codes is None or targets is None or codes.numel() != targets.numel():
        return
    ROWS.decoded += 1
    flat = targets.detach().reshape(-1)
    alike = max(float((one.reshape(-1) == flat).float().mean()) for one in (codes, codes.T))
    ROWS.copied += alike > _MOSTLY and len(flat.unique()) > 2


def _labels_of(tensor, targets):
    """The class of each row; none where targets are no classes."""
    alone = targets.dim() == 1 or (targets.dim() == 2 and targets.shape[1] == 1)
    if not alone or len(targets) != len(tensor):
        return []
    labels = targets.reshape(-1)[:_MOST_ROWS]
    are_classes = not labels.is_floating_point() or bool(((labels == 0) | (labels == 1)).all())
    return labels.tolist() if are_classes else []


def _look_at_both(compared):
    """Of a step with a loss of classes and one of shares of them, whether both mean the same."""
    labels = [one for one in compared if one.dim() == 1 and not one.is_floating_point()]
    shares = [one for one in compared if one.dim() == 2 and numbers.rows_sum_to_one(one)]
    if len(labels) == len(shares) == 1 and len(labels[0]) == len(shares[0]):
        if float(labels[0].min()) >= 0 and int(labels[0].max()) < shares[0].shape[1]:
            ROWS.pairs.add_answers(labels[0].tolist(), shares[0].argmax(1).tolist())


def _look_for_targets(tensor, targets):
    """Which columns of the inputs are the targets, but for scale and offset."""
    torch = records.torch()
    alone = targets.dim() == 1 or (targets.dim() == 2 and targets.shape[1] == 1)
    if tensor.dim() != 2 or not alone or len(targets) != len(tensor):
        return
    if len(tensor) < _LEAST_ROWS or tensor.shape[1] < _LEAST_COLUMNS or tensor.shape[1] > 4096:
        return
    columns, values = tensor[:_MOST_ROWS].cpu().double(), targets.reshape(-1)[:_MOST_ROWS]
    columns, values = columns - columns.mean(0), values.cpu().double()
    values = values - values.mean()
    size = torch.linalg.vector_norm(values) * torch.linalg.vector_norm(columns, dim=0)
    likeness = (columns * values[:, None]).sum(0).abs() / size.clamp_min(1e-12)
    equal = {at for at, one in enumerate(likeness.tolist()) if 1 - one < _ALIKE}
    ROWS.columns = sorted(equal & set(ROWS.columns) if ROWS.looked_columns else equal)
    ROWS.looked_columns += 1


@contained("rows")
def judge(tensor):
    """Note the rows of an evaluation."""
    if len(ROWS.judged) < _MOST_JUDGED and len(tensor) >= _LEAST_ROWS:
        hashes = sorted(set(_hashes(tensor)))
        if 2 * len(hashes) >= min(len(tensor), _MOST_ROWS) and _is_continuous(tensor.detach()):
            ROWS.judged.append(hashes)


def _is_continuous(tensor):
    """Whether rows that are alike come from one: of few values they are alike by chance."""
    if tensor.dim() > 2:
        return True
    columns = tensor[:_MOST_ROWS, :16].T
    return any(4 * len(set(column.tolist())) >= columns.shape[1] for column in columns)


def facts():
    """What is written down of the rows, each a number."""
    fields = {
        "batches": ROWS.batches,
        "distinct_batches": len(ROWS.prints),
        "batch_share": ROWS.share,
        "trained_rows": len(ROWS.trained),
        "repeated_rows": ROWS.trained_rows - len(ROWS.trained),
        "judged_rows": [float(len(one)) for one in ROWS.judged],
        "judged_trained": [float(sum(row in ROWS.trained for row in one)) for one in ROWS.judged],
        "target_columns": [float(at) for at in ROWS.columns[:16]] if ROWS.looked_columns else [],
    }
    fields.update(ROWS.pairs.facts())
    if ROWS.sequences:
        fields["shifted_targets"] = ROWS.shifted / ROWS.sequences
    if ROWS.decoded:
        fields["copied_targets"] = ROWS.copied / ROWS.decoded
    if ROWS.labels:
        fields.update(_labels())
    loader = max(LOOPS.loaders.values(), key=lambda one: one.steps, default=None)
    if loader is not None and loader.steps:
        fields.update(
            loader_begun=loader.begun, loader_steps=loader.steps, loader_length=loader.length,
            loader_samples=loader.samples, loader_shuffle=loader.shuffle, loader_line=loader.line,
        )  # fmt: skip
    return fields


def _labels():
    """How many classes a batch has in the mean, and would have if its rows were drawn at random."""
    together = [label for batch in ROWS.labels for label in batch]
    shares = [together.count(label) / len(together) for label in set(together)]
    means = [sum(1 - (1 - share) ** len(batch) for share in shares) for batch in ROWS.labels]
    return {
        "label_batches": len(ROWS.labels),
        "batch_classes": sum(len(set(batch)) for batch in ROWS.labels) / len(ROWS.labels),
        "random_classes": sum(means) / len(means),
    }
