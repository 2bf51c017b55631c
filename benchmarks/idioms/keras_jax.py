"""Keras on JAX: fit with two metrics and a callback."""

import os

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
x = np.random.default_rng(0).random((200, 8, 8, 3), dtype="float32")
y = keras.utils.to_categorical((x.mean((1, 2, 3)) > 0.5).astype(int), 2)
model = keras.Sequential(
    [
        layers.Conv2D(8, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dropout(0.3),
        layers.Dense(2, activation="softmax"),
    ]
)
model.compile("adam", "categorical_crossentropy", metrics=["accuracy", "mse"])
seen = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(epoch, logs))
model.fit(x, y, epochs=3, batch_size=40, verbose=0, callbacks=seen)
