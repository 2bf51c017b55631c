"""Whether rows and their labels belong together, as far as they can be compared: one row with
several labels, one row that fills a batch, two losses that are given different answers.
"""

from statistics import fmean, pvariance

_FEWEST_ROWS, _MOST_KEPT, _MOST_ENTRIES = 8, 1 << 14, 256
_FEWEST_BATCHES, _MOST_BATCHES = 8, 60


class RowLabels:
    """The rows of a training by a key of each, and the labels that they came with."""

    def __init__(self):
        self.batches = self.alike = 0
        self.label_of, self.contradicted = {}, set()
        self.both = self.agreed = 0
        self.expected = 0.0
        self.spreads = []

    def add_batch(self, keys):
        """Note whether one row fills a batch."""
        self.batches += 1
        self.alike += len(keys) >= _FEWEST_ROWS and len(set(keys)) == 1

    def add_labels(self, keys, labels):
        """Note the rows that come with one label and with another."""
        for key, label in zip(keys, labels):
            if key in self.label_of or len(self.label_of) < _MOST_KEPT:
                if self.label_of.setdefault(key, label) != label:
                    self.contradicted.add(key)

    def add_answers(self, labels, others):
        """Note how often two losses are given the same class for a row, and how often that would
        happen by chance.
        """
        self.both += len(labels)
        self.agreed += sum(one == other for one, other in zip(labels, others))
        shares = (others.count(label) for label in labels)
        self.expected += sum(shares) / max(1, len(others))

    def add_levels(self, levels):
        """Note the mean of each row of a batch."""
        if len(levels) >= _FEWEST_ROWS and len(self.spreads) < _MOST_BATCHES:
            self.spreads.append((fmean(levels), pvariance(levels)))

    def _between(self):
        """The share of the spread of the rows' means that is between batches, not within them."""
        between = pvariance([mean for mean, _ in self.spreads])
        whole = between + fmean(spread for _, spread in self.spreads)
        return between / whole if whole > 0 else 0.0

    def facts(self):
        """What is written down of them, each a number."""
        fields = {"row_batches": self.batches, "alike_batches": self.alike}
        if self.label_of:
            fields["labelled_rows"] = len(self.label_of)
            fields["contradicted_rows"] = len(self.contradicted)
        if self.both:
            fields["answers"] = self.both
            fields["answers_agreed"] = self.agreed
            fields["answers_by_chance"] = self.expected
        if len(self.spreads) >= _FEWEST_BATCHES:
            fields["between_batches"] = self._between()
        return fields


def keys_of(array):
    """A key for each row of an array of numpy; none where rows may be alike by chance."""
    table = array.reshape(len(array), -1)
    if table.dtype.kind != "f" or not _is_continuous(table):
        return []
    few = table[:, :: max(1, -(-table.shape[1] // _MOST_ENTRIES))]
    return [row.tobytes() for row in few]


def _is_continuous(table):
    columns = table[:_MOST_ENTRIES, :16].T
    return any(4 * len(set(column.tolist())) >= len(column) for column in columns)
