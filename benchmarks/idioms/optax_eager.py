"""JAX: an optax loop without jit, and then plain gradient descent."""

import jax
import jax.numpy as jnp
import optax

x = jax.random.normal(jax.random.PRNGKey(0), (64, 3))
y = x @ jnp.array([1.0, -1.0, 2.0])
params = {"w": jnp.zeros(3), "b": jnp.zeros(())}
optimizer = optax.sgd(0.05, momentum=0.9)
state = optimizer.init(params)


def loss_of(params):
    return optax.l2_loss(x @ params["w"] + params["b"], y).mean()


for _ in range(25):
    loss, gradients = jax.value_and_grad(loss_of)(params)
    updates, state = optimizer.update(gradients, state, params)
    params = optax.apply_updates(params, updates)
    print(repr(float(loss)))
for _ in range(5):
    gradients = jax.grad(loss_of)(params)
    params = jax.tree.map(lambda value, slope: value - 0.05 * slope, params, gradients)
    print(repr(float(loss_of(params))))
