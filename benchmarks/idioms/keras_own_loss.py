"""Keras: loops with a GradientTape whose loss is a function or written out."""

import keras
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(0)
x = tf.random.normal((256, 8), seed=1)
y = tf.reduce_sum(x, 1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)


def train(loss_of):
    model = keras.Sequential([layers.Dense(16, activation="relu"), layers.Dense(1)])
    optimizer = keras.optimizers.Adam(1e-2)
    for inputs, targets in data.repeat(3):
        with tf.GradientTape() as tape:
            loss = loss_of(targets, model(inputs, training=True))
        weights = model.trainable_variables
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        print(repr(float(loss)))


train(lambda wanted, given: tf.reduce_mean(tf.square(wanted - given)))
train(lambda wanted, given: tf.reduce_mean(keras.losses.mean_absolute_error(wanted, given)))
