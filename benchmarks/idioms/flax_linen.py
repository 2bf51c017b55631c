"""Flax Linen: a TrainState and a jitted step."""

import flax.linen as nn
import jax
import optax
from flax.training.train_state import TrainState


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(nn.relu(nn.Dense(16)(x)))


model = Net()
x = jax.random.normal(jax.random.PRNGKey(0), (96, 5))
y = (x[:, 0] > 0).astype(int)
params = model.init(jax.random.PRNGKey(1), x)["params"]
state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(0.1))


@jax.jit
def train_step(state, x, y):
    def loss_of(params):
        logits = state.apply_fn({"params": params}, x)
        return optax.softmax_cross_entropy(logits, jax.nn.one_hot(y, 2)).mean()

    loss, gradients = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=gradients), loss


for _ in range(25):
    state, loss = train_step(state, x, y)
    print(repr(float(loss)))
