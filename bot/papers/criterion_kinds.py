"""The kinds of hyperparameters that are judged: how papers phrase each, what code calls it, and how
a run shows it. A new kind is a row here.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bot.kernel.paper import CriterionKind, PaperTable
from bot.kernel.training_types import HyperparameterKind, TrainingTrace
from bot.papers import traces
from bot.papers.numbers import COUNT, NUMBER, number

UNREAD = "never read"
"""In place of the value of a setting that no code reads."""

Values = Callable[[TrainingTrace], str]
"""What a run used, in canonical form; "" where its trace does not tell."""


@dataclass(frozen=True)
class KindRow:
    """`phrases` find the value in a sentence as group 1; `words` map what stands there to a
    canonical word. A phrase does not count where `unless` stands in it or just before it. `codes`
    are names of options, arguments and variables, `labels` rows of tables of hyperparameters.
    Without `is_essential` a paper that does not state it leaves nothing open. An `is_list` kind may
    have several values, and of an `is_sole` one a sentence with several states none. What a run shows counts for the stated values of `decides` alone where
    there are some; `matches(observation, stated, sentence)` compares them, where numbers and words as
    they are do not serve.
    """

    kind: CriterionKind
    name: str
    phrases: tuple[re.Pattern[str], ...]
    codes: re.Pattern[str] | None = None
    labels: re.Pattern[str] | None = None
    words: tuple[tuple[str, str], ...] = ()
    unless: re.Pattern[str] | None = None
    places: tuple[HyperparameterKind, ...] = ()
    observe: Values = lambda _: ""
    is_essential: bool = False
    is_count: bool = False
    is_list: bool = False
    is_sole: bool = False
    decides: frozenset[str] = frozenset()
    matches: Callable[[str, str, str], bool] | None = None

    def canonical(self, text: str) -> str:
        """A value in the form in which values are compared; "" for none of this kind."""
        text = text.strip().strip("'\"").lower()
        for word, pattern in self.words:
            if re.fullmatch(pattern, text):
                return word
        if self.words:
            return ""
        text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
        values = [number(part) for part in re.split(r"\s*(?:,|and|-)\s+|\s*,\s*", text)]
        is_list = len(values) > 1 and not self.is_list
        if not values or is_list or any(value is None for value in values):
            return ""
        return ", ".join(f"{value:g}" for value in values if value is not None)


def _row(kind: CriterionKind, name: str, *phrases: str, **more: object) -> KindRow:
    patterns = {
        key: re.compile(str(value), re.IGNORECASE)
        for key, value in more.items()
        if key in {"codes", "labels", "unless"}
    }
    rest = {key: value for key, value in more.items() if key not in patterns}
    compiled = tuple(re.compile(phrase, re.IGNORECASE) for phrase in phrases)
    return KindRow(kind, name, compiled, **patterns, **rest)  # type: ignore[arg-type]


def _alternatives(words: tuple[tuple[str, str], ...]) -> str:
    return "|".join(pattern for _, pattern in words)


_TO = (
    r"(?:[\s:=≈(]|\b(?:of|is|are|was|were|be|set|to|at|by|with|size|rate|value|probability|coefficient|"
    r"parameter|equals?|equal|fixed|kept|constant|the|a|an|default|initial(?:ly)?|starting|from|and|use|"
    r"we|η|β|λ|p|lr|on|adam|sgd|training)\b){1,12}?"
)
"""What stands between a name and its value."""
_N = rf"{NUMBER}(?!\w|\.\d)"
_OPTIMIZERS = (
    ("adamw", r"adam-?w"),
    ("adam", r"adam"),
    ("rmsprop", r"rms-?prop"),
    ("adagrad", r"adagrad"),
    ("adadelta", r"adadelta"),
    ("adamax", r"adamax"),
    ("nadam", r"nadam"),
    ("radam", r"radam"),
    ("lbfgs", r"l-?bfgs"),
    ("lion", r"lion"),
    ("sgd", r"sgd|stochastic gradient descent"),
)
_LOSSES = (
    ("bce", r"binary cross[- ]?entropy|bce(?:withlogits)?(?:loss)?|binary_crossentropy|bce_logits"),
    ("cross_entropy", r"(?:softmax |categorical )?cross[- _]?entropy(?:loss)?|(?:sparse_)?categorical_crossentropy|nll(?:loss)?|log[- _]loss"),
    ("mse", r"mean[- _]squared[- _]error|mse(?:loss)?|squared (?:error|loss)|l2 loss"),
    ("mae", r"mean[- _]absolute[- _]error|mae|l1(?:loss)?"),
    ("huber", r"(?:smooth[- _]?l1|huber)(?:loss)?"),
    ("hinge", r"hinge"),
)  # fmt: skip
_ACTIVATIONS = (
    ("leaky_relu", r"leaky[- _]?relu"),
    ("relu", r"relu|rectified linear(?: units?)?"),
    ("gelu", r"gelu"),
    ("silu", r"silu|swish"),
    ("elu", r"elu"),
    ("selu", r"selu"),
    ("tanh", r"tanh|hyperbolic tangent"),
    ("sigmoid", r"sigmoid"),
)
_SCHEDULES = (
    ("cosine", r"cosine(?:[- ](?:annealing|annealed|decay|schedule))?|cosineannealing\w*"),
    ("one-cycle", r"one[- ]?cycle\w*"),
    ("exponential", r"exponential(?:ly)?(?: decay)?|exponentiallr"),
    ("step", r"step(?:[- ]?(?:wise|lr|decay|schedule))?|multi-?step\w*"),
    ("polynomial", r"polynomial(?: decay)?"),
    ("linear", r"linear(?:ly)?(?: decay)?|linearlr"),
    ("constant", r"constant|fixed"),
)
_INITIALISATIONS = (
    ("xavier", r"xavier|glorot"),
    ("he", r"he|kaiming"),
    ("orthogonal", r"orthogonal"),
    ("lecun", r"lecun"),
    ("normal", r"normal|gaussian"),
    ("uniform", r"uniform"),
    ("zero", r"zeros?"),
)
_NORMALISATIONS = (
    ("batch norm", r"batch[- ]?norm(?:ali[sz]ation)?\w*"),
    ("layer norm", r"layer[- ]?norm(?:ali[sz]ation)?\w*"),
    ("group norm", r"group[- ]?norm(?:ali[sz]ation)?\w*"),
    ("instance norm", r"instance[- ]?norm(?:ali[sz]ation)?\w*"),
)
_PREPROCESSING = (
    ("standardised", r"standardi[sz]\w*|zero mean and unit variance|z-?scored?|standardscaler|mean 0 and variance 1"),
    ("min-max", r"\[\s*0\s*,\s*1\s*\]|min-?max(?: scal\w+)?|minmaxscaler|unit interval"),
)  # fmt: skip
_AUGMENTATIONS = (
    ("flips", r"(?:random )?(?:horizontal )?flip(?:s|ping)?"),
    ("crops", r"(?:random )?crop(?:s|ping)?"),
    ("mixup", r"mix-?up"),
    ("cutout", r"cut-?out"),
    ("rotations", r"(?:random )?rotations?"),
)
_NO_WARM_UP = r"(?<!warmed up )(?<!warm-up )(?<!warmup )(?<!warm up )"
_NORM, _ACT = (
    r"batch[- ]?norm(?:ali[sz]ation)?|layer[- ]?norm(?:ali[sz]ation)?",
    (r"(?:an?\s+|the\s+)?(?:relu|gelu|tanh|silu|activations?|non-?linearit(?:y|ies))"),
)
_THEN = r"(?:,|\s+and|\s+then|,?\s+followed by|\s+before(?: each| every)?)\s+"
_AFTER = r"\s+(?:follows?|after)\s+(?:each\s+|every\s+)?"
_ORDERS = (
    ("normalisation first", rf"(?:{_NORM})(?: layers?)?{_THEN}{_ACT}|{_ACT}{_AFTER}(?:{_NORM})"),
    ("activation first", rf"{_ACT}{_THEN}(?:{_NORM})|(?:{_NORM}){_AFTER}{_ACT}"),
)
_CHANGES = (
    r"decay|warm|drop|divid|multipl|factor|anneal|schedul|every|reduc|search|grid|range|between|"
    r"sweep|\bnorm|select|among"
)

KINDS: tuple[KindRow, ...] = (
    _row(
        "optimizer",
        "optimizer",
        rf"\b(?:optimi[sz]\w*|train\w*|minimi[sz]\w*|updat\w*|us(?:e|es|ed|ing))\b[^.;]{{0,60}}?"
        rf"(?<![\w-])({_alternatives(_OPTIMIZERS)})(?![\w-]| bias)",
        rf"(?<![\w-])({_alternatives(_OPTIMIZERS)})\s+optimi[sz]er",
        words=_OPTIMIZERS,
        codes=r"optim(?:izer)?(?:_name|_type)?|opt|solver",
        labels=r"optimi[sz]er",
        unless=r"instead of|rather than|unlike|compared",
        places=("optimizer",),
        observe=traces.optimizer,
        is_essential=True,
    ),
    _row(
        "learning_rate",
        "learning rate",
        rf"learning[- ]rates?\b{_TO}({_N})",
        rf"({_N})\s+learning[- ]rate\b",
        rf"(?<!\w)(?:lr|η)\s*=\s*({_N})",
        codes=r"(?:base_|init(?:ial)?_|max_|peak_)?(?:lr|learning_?rate)(?:_init)?|eta0?",
        labels=r"(?:initial |base |peak )?learning[- ]rate|lr|η",
        unless=_CHANGES,
        places=("learning_rate",),
        observe=traces.learning_rate,
        is_essential=True,
    ),
    _row(
        "momentum",
        "momentum",
        rf"(?<!no )momentum\b{_TO}({_N})",
        rf"({_N})\s+momentum\b",
        codes=r"momentum",
        labels=r"momentum",
        unless=_CHANGES,
        places=("momentum",),
        observe=traces.momentum,
    ),
    _row(
        "weight_decay",
        "weight decay",
        rf"(?:weight[- ]decay|(?:ℓ|\bl)_?2[- ](?:regulari[sz]ation|penalty))\b"
        rf"(?: coefficient| factor| strength)?{_TO}({_N})",
        rf"({_N})\s+weight[- ]decay",
        codes=r"weight_?decay|wd|l2(?:_reg|_penalty)?",
        labels=r"weight[- ]decay|l2(?: regulari[sz]ation)?",
        unless=r"search|grid|range|between|sweep|norm of",
        places=("weight_decay",),
        observe=traces.weight_decay,
    ),
    _row(
        "clipping",
        "gradient clipping",
        rf"(?:gradients?(?: norms?)?[^.;]{{0,30}}clip\w*|clip\w*[^.;]{{0,30}}gradients?)\b[^.;,\d]{{0,24}}?({_N})",
        codes=r"(?:grad(?:ient)?_?)?(?:clip(?:ping)?|max_norm|max_grad_norm)(?:_norm|_value)?|grad_clip",
        labels=r"(?:gradient )?clip(?:ping)?(?: norm)?",
        places=("clipping",),
        observe=traces.clipping,
    ),
    _row(
        "schedule",
        "learning-rate schedule",
        rf"(?<![\w-]){_NO_WARM_UP}({_alternatives(_SCHEDULES)})\b(?!\s+(?:\w+\s+)?warm)"
        r"[^.;]{0,24}?(?:schedul\w+|learning[- ]rates?|anneal\w*|decay)",
        rf"learning[- ]rates?\b[^.;\d]{{0,40}}?\b{_NO_WARM_UP}({_alternatives(_SCHEDULES)})\b"
        r"(?!\s+(?:\w+\s+)?warm)",
        words=_SCHEDULES,
        codes=r"(?:lr_?)?sched(?:uler?)?(?:_type|_name)?|decay_type",
        labels=r"(?:learning[- ]rate )?(?:schedule|decay schedule|scheduler)",
        unless=r"noise|exceed|outperform|match|compared|than|weighting|λ",
        observe=traces.schedule,
    ),
    _row(
        "warm_up",
        "warm-up",
        rf"warm-?(?:up|ed up)\b[^.;\d]{{0,36}}?({_N})\s*(?:steps|iterations|updates|epochs)",
        rf"({_N})\s*(?:steps|iterations|updates|epochs)?\s*(?:of\s+)?(?:linear\s+)?warm-?up",
        codes=r"(?:num_)?warm_?up(?:_steps|_epochs|_iters)?",
        labels=r"warm-?up(?: steps| epochs)?",
        observe=traces.warm_up,
        matches=traces.same_warm_up,
    ),
    _row(
        "batch_size",
        "batch size",
        rf"(?:mini-?)?batch(?:es)?(?:[- ]sizes?)?\b(?! norm){_TO}({_N})",
        codes=r"(?:train_|per_device_train_|mini_?)?(?:batch_?size|bs|bsz)|batch",
        labels=r"(?:mini-?)?batch(?:[- ]size)?",
        unless=_CHANGES,
        places=("batch_size",),
        observe=traces.batch_size,
        is_essential=True,
        is_count=True,
    ),
    _row(
        "epochs",
        "epochs",
        rf"(?<![\d.])({COUNT})\s+(?:training\s+|full\s+)?epochs?\b",
        rf"number of (?:training )?epochs\b{_TO}({_N})",
        codes=r"(?:num_|n_|max_|total_|train_)?n?epochs?|max_iter",
        labels=r"(?:number of |training |max(?:imum)? )?epochs?",
        unless=r"every|after|first|warm|patience|last|each|previous|within|without improv",
        places=("epochs",),
        observe=traces.epochs,
        is_essential=True,
        is_count=True,
    ),
    _row(
        "steps",
        "training steps",
        rf"(?<![\d.])({_N})\s+(?:training\s+|gradient\s+|optimi[sz]ation\s+)?(?:steps|iterations|updates)\b",
        codes=r"(?:num_|n_|max_|total_|train_)?(?:steps|iters|iterations|updates)",
        labels=r"(?:training |total |number of )?(?:steps|iterations|updates)",
        unless=r"every|after|first|warm|patience|last|each|within|diffusion|sampling|inner",
        observe=traces.steps,
        is_count=True,
    ),
    _row(
        "loss",
        "loss",
        rf"\b({_alternatives(_LOSSES)})[- ](?:loss|objective|criterion)\b",
        rf"\b(?:minimi[sz]\w*|trained (?:with|on)|loss is|objective is)\b[^.;]{{0,30}}?\b({_alternatives(_LOSSES)})\b",
        r"\b((?:binary |softmax |categorical )?cross[- ]entropy)\b",
        rf"\bon the ({_alternatives(_LOSSES)})\b",
        words=_LOSSES,
        codes=r"loss(?:_fn|_function|_type|_name)?|criterion",
        labels=r"loss(?: function)?|objective",
        places=("loss",),
        observe=traces.loss,
    ),
    _row(
        "activation",
        "activation",
        rf"\b({_alternatives(_ACTIVATIONS)})\b(?:[- ](?:activations?|non-?linearit\w+|units?|functions?))?",
        words=_ACTIVATIONS,
        codes=r"act(?:ivation)?(?:_fn|_function|_name)?",
        labels=r"activations?(?: functions?)?|non-?linearity",
        unless=r"output|gate|final|such as|e\.g\.|unlike|replac|instead",
        places=("activation",),
        observe=traces.activation,
        is_sole=True,
    ),
    _row(
        "width",
        "hidden units",
        rf"\b({COUNT}(?:(?:,| and|, and)\s*{COUNT})*)\s+(?:hidden\s+)?(?:units|neurons)\b",
        rf"hidden (?:size|dimension|width)s?(?: d)?\b{_TO}({_N})",
        rf"\bwidth of ({_N})",
        codes=r"(?:n_|num_)?hidden(?:_?(?:size|dim|units|width|layer_sizes|features))?|width|d_model",
        labels=r"hidden (?:size|units|dimension|width)|width|units",
        places=("units",),
        observe=traces.widths,
        is_count=True,
        is_list=True,
    ),
    _row(
        "layers",
        "hidden layers",
        rf"\b({COUNT})[- ]hidden\s+(?:fully[- ]connected\s+|linear\s+|dense\s+)?layers?\b",
        codes=r"(?:n_|num_)(?:hidden_)?layers|depth",
        labels=r"(?:number of )?(?:hidden )?layers|depth",
        unless=r"last|first|final|each|output",
        observe=traces.hidden_layers,
        is_count=True,
    ),
    _row(
        "channels",
        "channels",
        rf"\b({COUNT}(?:(?:,| and|, and)\s*{COUNT})*)\s+(?:output\s+|feature\s+)?(?:channels|filters|feature maps)\b",
        codes=r"(?:out_|n_|num_|base_)?(?:channels|filters)",
        labels=r"(?:number of )?(?:channels|filters|feature maps)",
        unless=r"input|colou?r|rgb",
        observe=traces.channels,
        is_count=True,
        is_list=True,
    ),
    _row(
        "kernel",
        "kernel size",
        r"(?<![\d.])(\d{1,2})\s*[×x]\s*\d{1,2}\s+(?:convolutions?|conv\w*|kernels?|filters?)\b",
        rf"kernels?(?: sizes?)?\b{_TO}(\d{{1,2}})(?!\d|\.\d)",
        codes=r"kernel(?:_?size)?|ksize",
        labels=r"kernel(?: size)?|filter size",
        observe=traces.kernel,
        is_count=True,
        is_sole=True,
    ),
    _row(
        "stride",
        "stride",
        rf"strides?\b{_TO}(\d{{1,2}})(?!\d|\.\d)",
        r"(?<![\d.])(\d{1,2})(?:\s*[×x]\s*\d{1,2})?\s+strides?\b",
        r"\bstride[- ](\d{1,2})\b",
        codes=r"strides?",
        labels=r"strides?",
        unless=r"pool|patch|sliding|window|transposed|upsampl",
        observe=traces.stride,
        is_count=True,
        is_sole=True,
    ),
    _row(
        "order",
        "order of normalisation and activation",
        rf"\b({_alternatives(_ORDERS)})\b",
        words=_ORDERS,
        observe=traces.order,
    ),
    _row(
        "heads",
        "attention heads",
        rf"\b({COUNT})\s+(?:attention\s+)?heads\b",
        codes=r"(?:n_|num_)(?:attention_)?heads?",
        labels=r"(?:attention |number of )?heads",
        is_count=True,
    ),
    _row(
        "dropout",
        "dropout",
        rf"dropout\b(?: rate| probability| ratio)?{_TO}({_N})",
        rf"({_N})\s+dropout\b",
        codes=r"(?:p_?)?drop(?:out)?(?:_rate|_prob|_p)?",
        labels=r"dropout(?: rate| probability)?",
        unless=r"search|grid|range|between|sweep|without|no ",
        places=("dropout",),
        observe=traces.dropout,
        matches=traces.same_dropout,
    ),
    _row(
        "initialisation",
        "initialisation",
        rf"\b({_alternatives(_INITIALISATIONS)})\b(?:[- ](?:normal|uniform))?[- ]initiali[sz]\w+",
        rf"(?:weights|parameters|layers|matrices)\b[^.;]{{0,40}}?initiali[sz]ed\b[^.;]{{0,40}}?\b({_alternatives(_INITIALISATIONS)})\b",
        words=_INITIALISATIONS,
        labels=r"(?:weight )?initiali[sz]ation",
        unless=r"observe|negativ|hurt|harm|worse|fail|unlike|instead|retain|remov",
        observe=traces.initialisation,
        decides=frozenset(("he", "xavier", "lecun", "zero")),
        is_essential=True,
    ),
    _row(
        "normalisation",
        "normalisation",
        rf"\b({_alternatives(_NORMALISATIONS)})\b",
        words=_NORMALISATIONS,
        codes=r"norm(?:ali[sz]ation)?(?:_layer|_type)?",
        labels=r"normali[sz]ation(?: layer)?",
        unless=r"without|no |similar to|requires?|replac|retain|remov|unlike|instead|models where",
        observe=traces.normalisation,
    ),
    _row(
        "augmentation",
        "augmentation",
        rf"augment\w*\b[^.;]{{0,60}}?\b({_alternatives(_AUGMENTATIONS)})\b",
        rf"\b({_alternatives(_AUGMENTATIONS)})\b[^.;]{{0,40}}?augment\w*",
        words=_AUGMENTATIONS,
        labels=r"(?:data )?augmentations?",
        unless=r"without|no ",
    ),
    _row(
        "preprocessing",
        "preprocessing",
        rf"(?:inputs?|features?|data|pixels?|images?|values)\b[^.;]{{0,40}}?({_alternatives(_PREPROCESSING)})",
        rf"\b({_alternatives(_PREPROCESSING)})\s+(?:inputs?|features?|data)",
        words=_PREPROCESSING,
        labels=r"(?:pre-?processing|scaling|normali[sz]ation of inputs)",
        unless=r"sampl|draw|random|uniform|generat",
        places=("preprocessing",),
        observe=traces.preprocessing,
    ),
    _row(
        "split",
        "share of test data",
        rf"({_N})\s*%[^.;%]{{0,40}}?\b(?:for test\w*|test\w* (?:set|data|split)|held[- ]out|is held out|are held out)",
        rf"(?:hold(?:ing)? out|held[- ]out|test (?:share|fraction|size))\b[^.;\d]{{0,24}}?({_N})\s*%?",
        rf"(?<!\d){NUMBER}\s*%?\s*[/:–-]\s*({_N})\s*%?\s*(?:random\s+|stratified\s+)?(?:train\w*[/-]test\s+)?split",
        codes=r"test_(?:size|split|frac(?:tion)?|share|ratio)",
        labels=r"test (?:share|size|fraction|split)",
        is_essential=True,
    ),
    _row(
        "seeds",
        "seeds",
        rf"\b({COUNT})\s+(?:different\s+|random\s+|independent\s+)*(?:seeds|runs|repetitions|trials|restarts)\b",
        codes=r"(?:n_|num_)(?:seeds|runs|repeats|trials|repetitions)",
        labels=r"(?:number of |random )?(?:seeds|runs)",
        is_essential=True,
        is_count=True,
    ),
    _row(
        "early_stopping",
        "early stopping",
        rf"(?:early[- ]stopping|patience)\b[^.;\d]{{0,40}}?({_N})",
        codes=r"(?:early_?stop(?:ping)?_?)?patience",
        labels=r"(?:early[- ]stopping )?patience|early stopping",
    ),
    _row(
        "hardware",
        "hardware",
        r"\b((?:NVIDIA\s+)?(?:V100|A100|H100|P100|T4|RTX ?\d{4}|GTX ?\d{4}(?: ?Ti)?|TPU ?v\d|A6000))s?\b",
        words=(("gpu", r"(?:nvidia )?(?:v100|a100|h100|p100|t4|rtx ?\d{4}|gtx ?\d{4}(?: ?ti)?|a6000)"), ("tpu", r"tpu ?v\d")),
        labels=r"hardware|gpu",
    ),
    _row("method", "method"),
)  # fmt: skip

_TABLE_WORDS = re.compile(r"hyper-?parameter|settings?|configuration|training details", re.I)

ROWS: dict[CriterionKind, KindRow] = {row.kind: row for row in KINDS}


def share(value: str) -> str:
    """A share of test data as a fraction, also where it is printed as a percentage."""
    plain = number(value)
    return value if plain is None or plain <= 1 else f"{plain / 100:g}"


def labelled(text: str) -> Iterator[KindRow]:
    """The kinds that a row or column of a table of hyperparameters is called like."""
    plain = re.sub(r"\([^)]*\)|[:*]|\b[a-zA-Zα-ωη]\b\s*$", "", text).strip().lower()
    words, code = plain.replace("_", " "), plain.replace(" ", "_")
    for row in KINDS:
        is_label = row.labels is not None and row.labels.fullmatch(words)
        if is_label or (row.codes is not None and row.codes.fullmatch(code)):
            yield row


def is_settings_table(table: PaperTable) -> bool:
    """Whether a table lists hyperparameters, by its caption or its labels."""
    labels = [row[0] for row in table.rows if row]
    hits = sum(any(True for _ in labelled(label)) for label in labels)
    heads = [table.column(at) for at in range(len(table.rows[0]))] if table.rows else []
    across = sum(any(True for _ in labelled(head)) for head in heads)
    by_topic = bool(_TABLE_WORDS.search(table.caption))
    return hits >= (1 if by_topic else 3) or across >= (1 if by_topic else 3)
