"""Keras: a loop with a GradientTape, once eager and once in a tf.function."""

import keras
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(0)
x = tf.random.normal((256, 8), seed=1)
y = tf.cast(tf.reduce_sum(x, 1) > 0, tf.int32)
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(256, seed=1).batch(32)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def make():
    return keras.Sequential(
        [layers.Dense(16, activation="relu"), layers.Dropout(0.1), layers.Dense(2)]
    )


model, optimizer = make(), keras.optimizers.Adam(1e-2)
for inputs, labels in data.repeat(2):
    with tf.GradientTape() as tape:
        loss = loss_fn(labels, model(inputs, training=True))
    gradients = tape.gradient(loss, model.trainable_weights)
    optimizer.apply_gradients(zip(gradients, model.trainable_weights, strict=True))
    print(repr(float(loss)))

model, optimizer = make(), keras.optimizers.SGD(1e-1)


@tf.function
def train_step(inputs, labels):
    with tf.GradientTape() as tape:
        loss = loss_fn(labels, model(inputs, training=True))
    gradients = tape.gradient(loss, model.trainable_weights)
    optimizer.apply(gradients, model.trainable_weights)
    return loss


for inputs, labels in data.repeat(3):
    print(repr(float(train_step(inputs, labels))))
