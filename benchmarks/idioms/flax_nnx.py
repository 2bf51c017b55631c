"""Flax NNX: a module, its optimiser and a jitted step."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(4, 16, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.last = nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.drop(nnx.relu(self.first(x))))


model = Net(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adamw(1e-2), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, x, y):
    def loss_of(model):
        return jnp.mean((model(x) - y) ** 2)

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, gradients)
    return loss


x = jax.random.normal(jax.random.PRNGKey(1), (128, 4))
y = x.sum(1, keepdims=True)
for _ in range(25):
    print(repr(float(train_step(model, optimizer, x, y))))
