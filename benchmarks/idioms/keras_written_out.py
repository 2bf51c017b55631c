"""Keras: losses written out in a train_step without a compiled loss, and in a tf.function."""

import keras
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(0)
x = tf.random.normal((256, 8), seed=1)
y = tf.reduce_sum(x, 1)


class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = layers.Dense(16, activation="relu"), layers.Dense(1)

    def call(self, inputs):
        return self.out(self.hidden(inputs))

    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            cost = tf.reduce_mean(tf.abs(self(inputs, training=True)[:, 0] - targets))
        gradients = tape.gradient(cost, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"cost": cost}


model = Own()
model.compile(optimizer="sgd")
history = model.fit(x, y, epochs=2, verbose=0)
print([repr(float(value)) for value in history.history["cost"]])

model, optimizer = Own(), keras.optimizers.Adam(1e-2)


@tf.function
def step(inputs, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(targets - model(inputs)))  # (32,) - (32, 1)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for inputs, targets in tf.data.Dataset.from_tensor_slices((x, y)).batch(32):
    print(repr(float(step(inputs, targets))))
