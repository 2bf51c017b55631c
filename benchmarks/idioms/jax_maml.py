"""JAX: a gradient through a gradient, over a batch of tasks."""

import jax
import jax.numpy as jnp
import optax

keys = jax.random.split(jax.random.PRNGKey(1), 3)
params = {
    "w1": jax.random.normal(keys[0], (1, 20)),
    "w2": jax.random.normal(keys[1], (20, 1)) * 0.2,
}
tx = optax.adam(3e-3)
state = tx.init(params)


def loss_of(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)


def adapted(params, x, y):
    gradients = jax.grad(loss_of)(params, x, y)
    return jax.tree_util.tree_map(lambda p, g: p - 0.05 * g, params, gradients)


def meta_loss(params, x, y):
    def one(x, y):
        return loss_of(adapted(params, x[:8], y[:8]), x[8:], y[8:])

    return jnp.mean(jax.vmap(one)(x, y))


@jax.jit
def step(params, state, key):
    x = jax.random.uniform(key, (6, 16, 1), minval=-3, maxval=3)
    y = jnp.sin(x + jnp.arange(6.0)[:, None, None] / 2)
    loss, gradients = jax.value_and_grad(meta_loss)(params, x, y)
    updates, state = tx.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


for at in range(40):
    params, state, loss = step(params, state, jax.random.fold_in(keys[2], at))
    print(repr(float(loss)))
