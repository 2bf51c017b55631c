"""Keras: a train_step of one's own, a generator of batches, and train_on_batch."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(0)


class Net(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def batches():
    rng = np.random.default_rng(0)
    while True:
        x = rng.normal(size=(16, 5)).astype("float32")
        yield x, x.sum(1, keepdims=True)


inputs = keras.Input((5,))
outputs = layers.Dense(1)(layers.Dense(16, activation="relu")(inputs))
model = Net(inputs, outputs)
model.compile("rmsprop", "mse")
print(model.fit(batches(), steps_per_epoch=10, epochs=2, verbose=0).history)
plain = keras.Model(inputs, outputs)
plain.compile("sgd", "mse")
given = batches()
for _ in range(10):
    print(float(plain.train_on_batch(*next(given))))


class Tracked(Net):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.tracker = keras.metrics.Mean(name="loss")

    def train_step(self, data):
        self.tracker.update_state(super().train_step(data)["loss"])
        return {"loss": self.tracker.result()}

    @property
    def metrics(self):
        return [self.tracker]


model = Tracked(inputs, outputs)
model.compile("adam", "mse")
print(model.fit(batches(), steps_per_epoch=10, epochs=2, verbose=0).history)
