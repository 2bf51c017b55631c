"""JAX: gradient descent by hand, with `jax.grad` and donated parameters."""

from functools import partial

import jax
import jax.numpy as jnp

keys = jax.random.split(jax.random.PRNGKey(3), 3)
x = jax.random.normal(keys[0], (200, 4))
y = (x[:, 0] > x[:, 1]).astype(jnp.float32)
weights = {"in": jax.random.normal(keys[1], (4, 12)) * 0.5, "out": jnp.zeros((12,))}


def predict(weights, x):
    return jax.nn.sigmoid(jax.nn.relu(x @ weights["in"]) @ weights["out"])


def loss_of(weights, x, y):
    p = predict(weights, x)
    return -jnp.mean(y * jnp.log(p + 1e-7) + (1 - y) * jnp.log(1 - p + 1e-7))


@partial(jax.jit, donate_argnums=0, static_argnames="rate")
def update(weights, x, y, rate=0.5):
    gradients = jax.grad(loss_of)(weights, x, y)
    return jax.tree_util.tree_map(lambda w, g: w - rate * g, weights, gradients)


accuracy = jax.jit(lambda weights, x, y: jnp.mean((predict(weights, x) > 0.5) == y))
for at in range(60):
    weights = update(weights, x, y, rate=0.5)
    if at % 20 == 19:
        print(repr(float(accuracy(weights, x, y))), repr(float(loss_of(weights, x, y))))
