"""JAX: a jitted step with optax."""

import jax
import jax.numpy as jnp
import optax

key = jax.random.PRNGKey(0)
w1, w2, data = jax.random.split(key, 3)
params = {
    "w1": jax.random.normal(w1, (6, 16)) * 0.3,
    "b1": jnp.zeros(16),
    "w2": jax.random.normal(w2, (16, 3)) * 0.3,
}
x = jax.random.normal(data, (192, 6))
y = jnp.argmax(x[:, :3], axis=1)
optimizer = optax.adam(1e-2)
state = optimizer.init(params)


def loss_of(params, x, y):
    hidden = jax.nn.relu(x @ params["w1"] + params["b1"])
    logits = hidden @ params["w2"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@jax.jit
def step(params, state, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


for i in range(60):
    rows = slice(i % 6 * 32, i % 6 * 32 + 32)
    params, state, loss = step(params, state, x[rows], y[rows])
    print(repr(float(loss)))
