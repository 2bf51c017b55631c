"""Equinox: a module, `filter_jit` and per-sample calls under `vmap`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

key = jax.random.PRNGKey(0)
model = eqx.nn.MLP(5, 2, 16, 2, activation=jax.nn.gelu, key=key)
x = jax.random.normal(key, (120, 5))
y = (x[:, 0] + x[:, 1] > 0).astype(int)
tx = optax.adamw(5e-3, weight_decay=1e-3)
state = tx.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_value_and_grad
def loss_of(model, x, y):
    logits = jax.vmap(model)(x)
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, y))


@eqx.filter_jit
def step(model, state, x, y):
    loss, gradients = loss_of(model, x, y)
    updates, state = tx.update(gradients, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, loss


for at in range(40):
    model, state, loss = step(model, state, x, y)
    print(repr(float(loss)))
