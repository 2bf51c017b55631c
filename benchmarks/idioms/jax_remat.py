"""JAX: layers that are computed again, gradients summed over parts, a method that is jitted."""

from functools import partial

import jax
import jax.numpy as jnp
import optax


class Trainer:
    def __init__(self):
        keys = jax.random.split(jax.random.PRNGKey(5), 4)
        self.params = [jax.random.normal(key, (8, 8)) * 0.35 for key in keys[:3]]
        self.tx = optax.MultiSteps(optax.sgd(0.05), every_k_schedule=2)
        self.state = self.tx.init(self.params)
        self.x = jax.random.normal(keys[3], (64, 8))

    @partial(jax.jit, static_argnums=0)
    def step(self, params, state, x):
        def loss_of(params):
            h = x
            for w in params:
                h = jax.checkpoint(lambda h, w: jax.nn.silu(h @ w))(h, w)
            return jnp.mean((h - x[:, ::-1]) ** 2)

        loss, gradients = jax.value_and_grad(loss_of)(params)
        updates, state = self.tx.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, {"loss": loss}

    def fit(self):
        for at in range(40):
            rows = self.x[at % 2 * 32 : at % 2 * 32 + 32]
            self.params, self.state, told = self.step(self.params, self.state, rows)
            print(repr(float(told["loss"])))


Trainer().fit()
