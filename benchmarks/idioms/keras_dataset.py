"""Keras: a subclassed model fed by a shuffled tf.data pipeline."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(0)


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.conv = layers.Conv2D(8, 3, activation="relu")
        self.pool = layers.GlobalAveragePooling2D()
        self.drop = layers.Dropout(0.2)
        self.out = layers.Dense(4)

    def call(self, x, training=False):
        return self.out(self.drop(self.pool(self.conv(x)), training=training))


x = np.random.default_rng(0).random((200, 8, 8, 1), dtype="float32")
y = (x.mean((1, 2, 3)) * 4).astype("int32")
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(200).batch(20)
model = Net()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
schedule = keras.optimizers.schedules.ExponentialDecay(1e-2, 10, 0.9)
model.compile(keras.optimizers.AdamW(schedule), loss, metrics=["accuracy"])
print(model.fit(data, epochs=3, verbose=0, validation_data=data).history)
