"""Keras: variables that no model holds, in a loop with a GradientTape."""

import keras
import tensorflow as tf

keras.utils.set_random_seed(0)
x = tf.random.normal((128, 5), seed=1)
y = tf.cast(tf.reduce_sum(x, 1) > 0, tf.float32)
weights = tf.Variable(tf.random.normal((5, 1), seed=2))
bias = tf.Variable(tf.zeros(1))
optimizer = keras.optimizers.SGD(1e-1)

for _ in range(30):
    with tf.GradientTape() as tape:
        logits = tf.squeeze(tf.matmul(x, weights) + bias, 1)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, [weights, bias])
    optimizer.apply_gradients(zip(gradients, [weights, bias], strict=True))
    print(repr(float(loss)))
