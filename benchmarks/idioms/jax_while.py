"""JAX: steps inside a `while_loop`, whose values nobody sees."""

import jax
import jax.numpy as jnp

x = jax.random.normal(jax.random.PRNGKey(0), (50, 3))
y = x @ jnp.array([1.0, -2.0, 0.5])


@jax.jit
def fit(w):
    def body(state):
        w, at = state
        return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w), at + 1

    return jax.lax.while_loop(lambda state: state[1] < 100, body, (w, 0))


w, count = fit(jnp.zeros(3))
print(repr(float(w[0])), repr(float(w[1])), int(count))
