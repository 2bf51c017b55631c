"""Flax Linen: a convolution with batch norm and dropout, its statistics beside the parameters."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(8, (3, 3))(x)
        x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
        x = nn.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1)
        x = nn.Dropout(0.2, deterministic=not train)(nn.relu(nn.Dense(24)(x)))
        return nn.Dense(3)(x)


key = jax.random.PRNGKey(0)
x = jax.random.normal(key, (96, 8, 8, 1))
y = jnp.argmax(
    jnp.stack([x[:, :4].mean((1, 2, 3)), x[:, 4:].mean((1, 2, 3)), 0.02 * jnp.ones(96)]), 0
)
model = Net()
variables = model.init(key, x[:2], train=False)
params, stats = variables["params"], variables["batch_stats"]
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1, momentum=0.9))
state = tx.init(params)


@jax.jit
def step(params, stats, state, x, y, key):
    def loss_of(params):
        logits, changed = model.apply(
            {"params": params, "batch_stats": stats}, x, train=True,
            rngs={"dropout": key}, mutable=["batch_stats"],
        )  # fmt: skip
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
        return losses.mean(), changed["batch_stats"]

    (loss, stats), gradients = jax.value_and_grad(loss_of, has_aux=True)(params)
    updates, state = tx.update(gradients, state, params)
    return optax.apply_updates(params, updates), stats, state, loss


for at in range(30):
    rows = slice(at % 3 * 32, at % 3 * 32 + 32)
    key, dropout = jax.random.split(key)
    params, stats, state, loss = step(params, stats, state, x[rows], y[rows], dropout)
    print(repr(float(loss)))
