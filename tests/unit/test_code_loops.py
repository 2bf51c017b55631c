"""Training loops: for each idiom a program that is one, and one that nearly is."""

from __future__ import annotations

import ast

import pytest

from bot.kernel.source.training_loops import training_score

ARE = {
    "explicit": "for x, y in data:\n    opt.zero_grad()\n    loss(model(x), y).backward()\n    opt.step()",
    "fit": "model.compile(optimizer='adam', loss='mse')\nmodel.fit(x, y)",
    "transformers": "trainer = Trainer(model=m, args=a)\ntrainer.train()",
    "lightning": "class M(LightningModule):\n    def training_step(self, b): return 1\n    def configure_optimizers(self): return 2",
    "tape": (
        "def step(x):\n    with tf.GradientTape() as tape:\n        l = loss(m(x))\n    g = tape.gradient(l, v)\n"
        "    opt.apply_gradients(zip(g, v))"
    ),
    "jax": (
        "@jax.jit\ndef update(p, s, b):\n    l, g = jax.value_and_grad(loss)(p, b)\n    u, s = opt.update(g, s)\n"
        "    return optax.apply_updates(p, u), s"
    ),
}
NEARLY = {
    "explicit": "loss(model(x)).backward()\nfor p in model.parameters():\n    print(p.grad)\n    bar.step()",
    "fit": "scaler = StandardScaler()\nscaler.fit(x, y)\nx = scaler.transform(x)",
    "transformers": "trainer = Trainer(model=m)\ntrainer.evaluate()\nmodel.train()",
    "lightning": "class M(LightningModule):\n    def validation_step(self, b): return 1\nTrainer().validate(M())",
    "tape": "def saliency(x):\n    with tf.GradientTape() as tape:\n        tape.watch(x)\n        l = m(x)\n    return tape.gradient(l, x)",
    "jax": "@jax.jit\ndef hessian(p):\n    return jax.jacfwd(jax.grad(loss))(p)",
}


def score(source: str) -> float:
    return training_score(ast.parse(source))


@pytest.mark.parametrize("idiom", ARE)
def test_an_idiom_is_known_and_what_nearly_is_one_is_not(idiom: str) -> None:
    assert score(ARE[idiom]) >= 0.9
    assert score(NEARLY[idiom]) == 0.0


def test_the_most_complete_loop_counts() -> None:
    partial = "for x in data:\n    loss(x).backward()\n    opt.step()\n"
    assert score(partial) == 0.8
    assert score(partial + ARE["explicit"]) == 1.0


def test_further_forms() -> None:
    assert score("t = pl.Trainer()\nt.fit(m)") == 0.9
    assert score(
        "g = jax.grad(loss)\ndef up(p):\n    d = g(p)\n    return jax.tree_util.tree_map(lambda a, b: a - b, p, d)"
    )
    assert (
        score("for x in d:\n    for p in ps: p.grad = None\n    l(x).backward()\n    o.step()")
        == 1.0
    )
