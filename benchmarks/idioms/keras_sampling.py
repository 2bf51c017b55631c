"""Keras: a variational autoencoder, whose layers draw random numbers and whose `train_step` is
given inputs alone.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(0)


class Sampling(layers.Layer):
    def __init__(self):
        super().__init__()
        self.seeds = keras.random.SeedGenerator(7)

    def call(self, mean, spread):
        drawn = keras.random.normal(ops.shape(mean), seed=self.seeds)
        return mean + ops.exp(spread) * drawn + 0.01 * keras.random.normal(ops.shape(mean))


class Autoencoder(keras.Model):
    def __init__(self):
        super().__init__()
        self.mean, self.spread = layers.Dense(3), layers.Dense(3)
        self.sample, self.decode = Sampling(), layers.Dense(8)
        self.seen = []

    def call(self, inputs):
        return self.decode(self.sample(self.mean(inputs), self.spread(inputs)))

    def train_step(self, data):
        with tf.GradientTape() as tape:
            noise = tf.random.normal(tf.shape(data), stddev=0.1)
            loss = self.compute_loss(x=data, y=data, y_pred=self(data + noise, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"reconstruction": loss}


class Told(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        print(float(logs["reconstruction"]).hex())


table = np.random.default_rng(0).normal(size=(96, 8)).astype("float32")
for eager in (False, True):
    model = Autoencoder()
    model.compile("adam", "mse", run_eagerly=eager)
    model.fit(table, epochs=3, verbose=0, callbacks=[Told()])
    print(np.random.rand(), tf.random.uniform(()).numpy())
