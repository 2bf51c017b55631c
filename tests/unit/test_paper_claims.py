"""The numbers and hyperparameters that rules read in papers, and which of them is meant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.kernel.errors import UserError
from bot.kernel.paper import Criterion, NumberClaim, Paper, PaperFiles
from bot.papers.claims import choose_claim, read_claims
from bot.papers.criteria import read_criteria
from bot.papers.reading.archives import read_local
from bot.papers.reading.markdown import read_markdown
from bot.papers.reading.read import read_paper
from tests.support.papers import CORPUS

TABLE = """# GateNet: Small Gates

## Abstract

We propose GateNet. It reaches 94.2 % accuracy on digits (see Table 1).

## Results

Table 1: Test accuracy (%) and time, mean ± std over five random seeds.

| Method | digits | wine | Time (s) |
|---|---|---|---|
| MLP [3] | 91.0 ± 0.5 | 90.1 (0.4) | 12 |
| GateNet (ours) | **94.2 ± 0.3** | 95 | 14 |

Table 2: Ablation.

| Gates | Val accuracy | RMSE |
|---|---|---|
| 1 | 0.931 | 1.52 |
| 2 | 0.944 | 1.48 |
"""


def paper(text: str) -> Paper:
    return read_paper(PaperFiles(name="p", files={"paper.md": text.encode()}))


def claims(text: str = TABLE) -> tuple[NumberClaim, ...]:
    return read_claims(paper(text))


def stated(text: str) -> dict[str, str]:
    source = paper(f"# T\n\n## Training\n\n{text}\n")
    return {row.kind: row.stated for row in read_criteria(source, (), None) if row.stated}


def test_the_main_result_is_the_papers_own_that_its_abstract_repeats() -> None:
    first = claims()[0]
    assert (first.title, first.metric, first.value) == (
        "Table 1, GateNet (ours), digits",
        "accuracy",
        94.2,
    )
    assert (first.spread, first.seeds, first.is_percent) == (0.3, 5, True)
    assert (first.dataset, first.method) == ("digits", "GateNet (ours)")
    assert (first.quote.table, first.quote.row, first.quote.column) == ("T1", 1, 1)
    assert first.rounding == pytest.approx(0.05)


def test_every_quotation_is_in_the_paper() -> None:
    source = paper(TABLE)
    sentences = {row.id: row.text for row in source.sentences}
    tables = {row.id: row.rows for row in source.tables}
    for claim in read_claims(source):
        quote = claim.quote
        shown = sentences.get(quote.sentence) or tables[quote.table][quote.row][quote.column]
        assert quote.text == shown
        assert claim.text in quote.text


def test_columns_that_hold_no_result_are_left_out() -> None:
    assert not [claim for claim in claims() if claim.value in {12, 14}]
    assert [claim.value for claim in claims() if claim.dataset == "wine"] == [95.0, 90.1]
    assert [claim.spread for claim in claims() if claim.value == 90.1] == [0.4]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("", 94.2),
        ("Table 1, MLP, wine", 90.1),
        ("GateNet, wine", 95.0),
        ("Table 2, RMSE, 1.52", 1.52),
        ("94 % accuracy", 94.2),
        ("table 2, accuracy, 2", 0.944),
        ("table 2, val accuracy, 2", 0.944),
    ],
)
def test_words_choose_a_number(words: str, value: float) -> None:
    claim = choose_claim(claims(), words)
    assert claim is not None
    assert claim.value == value


@pytest.mark.parametrize("words", ["Table 3", "72 % accuracy", "F1", "ours, cifar"])
def test_a_number_that_is_not_there_is_refused_with_the_nearest(words: str) -> None:
    with pytest.raises(UserError, match="does not state") as caught:
        choose_claim(claims(), words)
    assert "GateNet (ours)" in caught.value.fix


@pytest.mark.parametrize(
    ("sentence", "metric", "value"),
    [
        ("Our model achieves an accuracy of 0.942 on digits.", "accuracy", 0.942),
        ("We obtain 87.3% top-1 accuracy.", "accuracy", 87.3),
        ("It attains an RMSE of 1.23 ± 0.04.", "rmse", 1.23),
        ("The perplexity is 18.4 on the test set.", "perplexity", 18.4),
        ("The mean squared error drops to 0.031.", "mse", 0.031),
    ],
)
def test_sentences_state_numbers(sentence: str, metric: str, value: float) -> None:
    (claim,) = claims(f"# T\n\n## Results\n\n{sentence}\n")
    assert (claim.metric, claim.value) == (metric, value)


@pytest.mark.parametrize(
    "sentence",
    [
        "Accuracy improves by 2.1 points over the baseline.",
        "The accuracy on digits is shown in Table 1.",
        "We compute accuracy after 10 epochs.",
        "We train with the cross-entropy loss for 200 epochs.",
    ],
)
def test_sentences_that_state_no_result(sentence: str) -> None:
    assert claims(f"# T\n\n## Results\n\n{sentence}\n") == ()


# Hyperparameters.


@pytest.mark.parametrize(
    ("sentence", "values"),
    [
        ("We use SGD with momentum 0.9 and a batch size of 64 for 30 epochs.",
         {"optimizer": "sgd", "momentum": "0.9", "batch_size": "64", "epochs": "30"}),
        ("We use a learning rate of $10^{-3}$ and weight decay $5 \\times 10^{-4}$.",
         {"learning_rate": "0.001", "weight_decay": "0.0005"}),
        ("The learning rate is decayed by a factor of 0.1 every 10 epochs.", {}),
        ("An MLP with two hidden layers of 64 and 32 units, ReLU activations and dropout of 0.2.",
         {"layers": "2", "width": "64, 32", "activation": "relu", "dropout": "0.2"}),
        ("We minimise the cross-entropy loss with AdamW; the learning rate follows a cosine schedule after a warm-up of 100 steps.",
         {"loss": "cross_entropy", "optimizer": "adamw", "schedule": "cosine", "warm_up": "100"}),
        ("Inputs are standardised to zero mean and unit variance and 20% of the data are held out for testing.",
         {"preprocessing": "standardised", "split": "0.2"}),
        ("Weights use Xavier initialization; gradients are clipped at norm 1.0.",
         {"initialisation": "xavier", "clipping": "1"}),
        ("The encoder has 4 attention heads and batch normalization.",
         {"heads": "4", "normalisation": "batch norm"}),
        ("We stop with early stopping (patience 10) on one NVIDIA V100 GPU.",
         {"early_stopping": "10", "hardware": "gpu"}),
        ("The learning rate was selected from 0.1, 0.01 and 0.001.", {}),
        ("The baseline uses a learning rate of 0.3.", {}),
        ("Batch normalization is used with 64 units.", {"normalisation": "batch norm", "width": "64"}),
        ("We repeat each experiment with five random seeds.", {"seeds": "5"}),
    ],
)  # fmt: skip
def test_hyperparameters_of_a_sentence(sentence: str, values: dict[str, str]) -> None:
    assert stated(sentence) == values


def test_a_table_of_hyperparameters_comes_before_sentences() -> None:
    text = "Batches of 16 samples are common.\n\nTable 1: Hyperparameters.\n\n| Setting | Value |\n|---|---|\n| Learning rate | 3e-4 |\n| Batch size | 128 |\n| Optimizer | AdamW |\n| Test share | 25 % |\n"
    assert stated(text) == {
        "optimizer": "adamw", "learning_rate": "0.0003", "batch_size": "128", "split": "0.25",
    }  # fmt: skip


def test_related_work_and_other_methods_say_nothing() -> None:
    text = "# T\n\n## Related work\n\nThey use a batch size of 512.\n"
    assert not [row for row in read_criteria(paper(text), (), None) if row.stated]


def test_what_is_left_open_names_the_cited_work() -> None:
    text = "# T\n\n## Training\n\nWe use Adam. All other hyperparameters follow [smith]. The batch size is the same as in [lee].\n"
    rows = {row.kind: row for row in read_criteria(paper(text), (), None)}
    assert rows["optimizer"].stated == "adam"
    assert (rows["learning_rate"].verdict, rows["learning_rate"].cited) == ("open", "smith")
    assert rows["batch_size"].cited == "lee"


def test_a_paper_that_trains_nothing_leaves_nothing_open() -> None:
    assert read_criteria(paper("# T\n\n## Proof\n\nThe lemma holds.\n"), (), None) == ()


@pytest.mark.parametrize("name", ["rff", "digits", "momentum"])
def test_the_three_papers(name: str) -> None:
    """Precision and recall of claims and hyperparameters are 1.0 on our own papers."""
    expected: dict[str, Any] = json.loads((CORPUS / name / "expected.json").read_text())
    source = read_paper(read_local(CORPUS / name / "paper"))
    read = read_claims(source)
    assert {key: getattr(read[0], key) for key in expected["claim"]} == expected["claim"]
    rows: tuple[Criterion, ...] = read_criteria(source, read, read[0])
    assert {row.kind: row.stated for row in rows if row.stated} == expected["criteria"]
    assert {row.kind: row.cited for row in rows if not row.stated} == expected["open"]


@pytest.mark.parametrize(
    ("sentence", "values"),
    [
        ("We train for 200,000 iterations with batches of 4,096 images.",
         {"steps": "200000", "batch_size": "4096"}),
        ("The batch size is set to 4M tokens.", {}),
        ("We pre-train MAE with AdamW.", {"optimizer": "adamw"}),
        ("Throughput is in images per second, with a batch size of 32.", {}),
        ("We fuse the correction into the learning rate for simplicity and plot 1 curve.", {}),
        ("It satisfies L2 = 4 in every case.", {}),
        ("We first warm-up the randomly initialized parameters for 500 iterations.", {}),
        ("A linear noise schedule is used for diffusion.", {}),
        ("With linear warmup starting from a learning rate of 0 the loss falls.", {}),
        ("The initial learning rate of 0.1 and weight decay 5e-4, for 10 epochs with batches of 32.",
         {"learning_rate": "0.1", "weight_decay": "0.0005", "epochs": "10", "batch_size": "32"}),
    ],
)  # fmt: skip
def test_sentences_of_real_papers_that_are_easily_misread(
    sentence: str, values: dict[str, str]
) -> None:
    assert stated(sentence) == values


@pytest.mark.parametrize(
    "sentence",
    ["We recall 2023 results.", "The map to R^2 is smooth.", "AUC 2016 is a workshop."],
)
def test_words_that_are_metrics_elsewhere(sentence: str) -> None:
    assert claims(f"# T\n\n## Results\n\n{sentence}\n") == ()


def test_an_acronym_in_parentheses_is_the_papers_own_method() -> None:
    text = "# Nothing Else\n\n## Abstract\n\nWe introduce Dynamic Gates (DyG).\n\n## Results\n\nTable 1: Accuracy (%).\n\n| Model | LN | DyG |\n|---|---|---|\n| ViT-B | 82.3 | 82.5 |\n"
    assert claims(text)[0].method == "DyG"
    assert claims(text)[0].value == 82.5


def test_a_table_of_settings_holds_no_result_and_its_alternatives_no_value() -> None:
    text = "# T\n\n## Setup\n\nTable 1: Hyperparameters of all tasks.\n\n| Parameter | Value |\n|---|---|\n| `batch_size` | 128 |\n| `num_heads` | 8 |\n| `learning_rate` | [0.001, 0.003] |\n| `num_layers` | 4 / 8 |\n| Acceleration factor | 4 |\n| Loss | 1.5 |\n"
    assert claims(text) == ()
    rows = read_criteria(paper(text), (), None)
    assert {row.kind: row.stated for row in rows if row.stated} == {
        "batch_size": "128",
        "heads": "8",
    }


@pytest.mark.parametrize(
    ("sentence", "kind", "stated"),
    [
        ("The number of epochs is set to 12 on COCO, 31 on ADE20K, and 107 on Cityscapes.", "epochs", ""),
        ("We keep a learning rate of 3e-4 for 7B and 1.5e-4 for 34B models.", "learning_rate", ""),
        ("We use a learning rate of 3e-4 for all models.", "learning_rate", "0.0003"),
        ("The log-linear schedule controls the noise.", "schedule", ""),
        ("The learning rate is warmed up linearly over 40 steps and then follows a cosine schedule.",
         "schedule", "cosine"),
        ("Linear warm-up takes 100 steps, then a cosine schedule follows.", "schedule", "cosine"),
        ("Recently, [smith2023] showed that a batch size of 128 suffices.", "batch_size", ""),
        ("The convolutions use kernels of size 3 with a stride of 2.", "stride", "2"),
        ("We repeat a 2x2 convolution and a 3x3 convolution.", "kernel", ""),
        ("Two convolutions with 16 and 32 channels follow.", "channels", "16, 32"),
        ("Each block applies batch normalisation and ReLU.", "order", "normalisation first"),
        ("Batch normalization after each activation helps.", "order", "activation first"),
        ("ReLU followed by batch norm is used.", "order", "activation first"),
        ("We observe that zero initialization hurts the performance.", "initialisation", ""),
        ("The loss is cross-entropy with a weight decay of 0.01.", "weight_decay", "0.01"),
        ("Figure 3 shows networks that use the Adam optimizer.", "optimizer", ""),
        ("As shown in Table 4, we trained networks with GELU activations.", "activation", ""),
        ("We tried ReLU and GELU activations.", "activation", ""),
        ("We remove the zero initialization of the last block.", "initialisation", ""),
        ("Inputs are drawn uniformly at random from [0, 1].", "preprocessing", ""),
        ("Inputs are scaled to [0, 1].", "preprocessing", "min-max"),
        ("The weighting of the penalty follows a linear decay.", "schedule", ""),
        ("We use SGD and drop the Adam bias correction.", "optimizer", "sgd"),
    ],
)  # fmt: skip
def test_what_a_sentence_states_of_a_kind(sentence: str, kind: str, stated: str) -> None:
    paper = read_markdown(f"# A\n\n## Training setup\n\n{sentence}\n")
    rows = {row.kind: row.stated for row in read_criteria(paper, (), None)}
    assert rows.get(kind, "") == stated  # type: ignore[call-overload]


SETTINGS = "Table {}: Hyperparameters.\n\n| Name | Value |\n|---|---|\n| Batch size | {} |\n| Epochs | 5 |\n"


def test_of_tables_for_several_data_sets_the_claims_own_counts() -> None:
    text = (
        "# Net\n\n## Results\n\nTable 1: Accuracy.\n\n| Method | coins |\n|---|---|\n| Net (ours) | 0.9 |\n\n"
        f"## Training on coins\n\n{SETTINGS.format(2, 32)}\n"
        f"## Training on dice\n\n{SETTINGS.format(3, 64)}\n"
    )
    for words, value in (("coins", "32"), ("cards", "")):
        paper = read_markdown(text.replace("Method | coins", f"Method | {words}"))
        claims = read_claims(paper)
        rows = {row.kind: row.stated for row in read_criteria(paper, claims, claims[0])}
        assert (rows["batch_size"], rows["epochs"]) == (value, "5")


def test_where_tables_differ_no_sentence_decides() -> None:
    text = (
        f"# Net\n\n## Training on coins\n\n{SETTINGS.format(2, 32)}\n"
        f"## Training on dice\n\n{SETTINGS.format(3, 64)}\n"
        "## Sensitivity of training\n\nA batch size of 7 is used here. We use SGD with momentum 0.5.\n"
    )
    rows = {row.kind: row.stated for row in read_criteria(read_markdown(text), (), None)}
    assert (rows["batch_size"], rows["momentum"]) == ("", "0.5")


def of_claim(text: str, table: str) -> dict[str, str]:
    source = paper(f"# Net\n\n## Training setup\n\n{text}\n\n## Results\n\n{table}\n")
    all_claims = read_claims(source)
    return {row.kind: row.stated for row in read_criteria(source, all_claims, all_claims[0])}


@pytest.mark.parametrize(("dataset", "loss"), [("coins", "mse"), ("stones", "cross_entropy")])
def test_a_sentence_on_two_tasks_says_what_the_claims_own_has(dataset: str, loss: str) -> None:
    table = f"Table 1: Accuracy.\n\n| Method | {dataset} |\n|---|---|\n| Net (ours) | 0.9 |\n"
    text = (
        "On coins the loss is the mean squared error, whereas on stones the loss is cross-entropy."
    )
    assert of_claim(text, table)["loss"] == loss
    assert "loss" not in of_claim(text, table.replace(dataset, "cards"))


def test_a_sentence_on_the_experiment_of_another_column_states_nothing() -> None:
    table = (
        "Table 1: Hyperparameters.\n\n| Name | coins | stones |\n|---|---|---|\n| Epochs | 5 | 6 |\n\n"
        "Table 2: Accuracy.\n\n| Method | {} |\n|---|---|\n| Net (ours) | 0.9 |\n"
    )
    text = "The stones task uses a cross-entropy loss. {} use SGD."
    rows = of_claim(text.format("Coins and stones"), table.format("coins"))
    assert (rows.get("loss"), rows["optimizer"], rows["epochs"]) == (None, "sgd", "5")
    assert of_claim(text.format("Stones"), table.format("coins")).get("optimizer", "") == ""
    assert of_claim(text.format("Coins"), table.format("stones"))["loss"] == "cross_entropy"
    assert of_claim(text.format("Coins"), table.format("cards"))["loss"] == "cross_entropy"


def test_the_caption_of_the_claims_own_table_comes_first() -> None:
    table = "Table 1: Accuracy with 40 % held out.\n\n| Method | coins |\n|---|---|\n| Net (ours) | 0.9 |\n"
    text = "Unless noted otherwise, 25 % of the data are held out."
    assert of_claim(text, table)["split"] == "0.4"
    assert of_claim(text, table.replace(" with 40 % held out", ""))["split"] == "0.25"


def test_the_history_in_an_introduction_states_nothing() -> None:
    text = "# T\n\n## Introduction\n\n{} batch normalization [smith2015] in 2015.\n"
    for words, stated in (("It began with", False), ("We use", True)):
        rows = read_criteria(read_markdown(text.format(words)), (), None)
        assert any(row.kind == "normalisation" for row in rows) is stated


RESULTS = """# Slow Fire: {} Sampling for Stories

## Abstract

A plain sampler reaches 57.1 accuracy.

## Results

Table 1: Accuracy (%).

| Method | coins | FPS |
|---|---|---|
| Plain | 57.1 | 20 |
| Cut- p | 56.0 | 40 |

{}

## Appendix

Table 2: Accuracy (%).

| Method | stones | FPS |
|---|---|---|
| Plain | 57.3 | 20 |
| Cut- p | **59.0** | 40 |
"""


def test_neither_bold_nor_a_repeated_rival_nor_a_tables_own_text_makes_the_main_result() -> None:
    text = RESULTS.format("Cut-p", "Cut-p has an accuracy of 59.0 % on stones.")
    first, *rest = claims(text)
    assert (first.value, first.dataset, first.method) == (56.0, "coins", "Cut- p")
    assert not any("FPS" in claim.title for claim in rest)
    assert claims(RESULTS.format("Better", ""))[0].value == 57.1  # no method is the paper's own


def test_a_name_that_ends_in_f_before_a_number_is_no_metric() -> None:
    table = "# T\n\n## Results\n\nTable 1: Quality.\n\n| Method | Size | {} |\n|---|---|---|\n| M2F | 121M | 54.4 |\n"
    assert claims(table.format("Frames")) == ()
    assert [claim.metric for claim in claims(table.format("PQ"))] == ["pq"]
    assert [claim.metric for claim in claims(table.format("F1"))] == ["f1"]


def test_a_percentage_is_no_squared_error_and_a_name_no_number() -> None:
    text = (
        "# Net\n\n## Results\n\nFine-tuning of MAE and ResNet-50 is alike.\n\n"
        "Table 1: Accuracy (standard errors below 1).\n\n| Method | MAE |\n|---|---|\n| Net (ours) | 83.7% |\n"
    )
    claims = read_claims(read_markdown(text))
    assert [(row.metric, row.value) for row in claims] == [("accuracy", 83.7)]
