"""JAX: an epoch is one compiled `lax.scan` over its batches."""

import jax
import jax.numpy as jnp
import optax

keys = jax.random.split(jax.random.PRNGKey(0), 4)
x = jax.random.normal(keys[0], (320, 6))
y = jnp.sin(x[:, :1]) + 0.5 * x[:, 1:2]
params = [
    {"w": jax.random.normal(keys[1], (6, 32)) * 0.4, "b": jnp.zeros(32)},
    {"w": jax.random.normal(keys[2], (32, 1)) * 0.2, "b": jnp.zeros(1)},
]
tx = optax.adam(optax.cosine_decay_schedule(1e-2, 200))


def loss_of(params, x, y):
    hidden = jnp.tanh(x @ params[0]["w"] + params[0]["b"])
    return optax.l2_loss(hidden @ params[1]["w"] + params[1]["b"], y).mean()


@jax.jit
def epoch(params, state, key):
    rows = jax.random.permutation(key, 320).reshape(10, 32)

    def body(carry, batch):
        params, state = carry
        loss, gradients = jax.value_and_grad(loss_of)(params, x[batch], y[batch])
        updates, state = tx.update(gradients, state, params)
        return (optax.apply_updates(params, updates), state), loss

    return jax.lax.scan(body, (params, state), rows)


state = tx.init(params)
for at in range(20):
    (params, state), losses = epoch(params, state, jax.random.fold_in(keys[3], at))
    print(repr(float(losses.mean())))
