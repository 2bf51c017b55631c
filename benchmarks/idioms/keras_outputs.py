"""Keras: two outputs with losses of their own, by name and weighed, and metrics for one."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(192, 6)).astype("float32")
kinds, sizes = x[:, :3].argmax(1), x.sum(1, keepdims=True)

inputs = keras.Input((6,))
hidden = layers.Dense(24, activation="relu")(inputs)
kind = layers.Dense(3, activation="softmax", name="kind")(hidden)
size = layers.Dense(1, name="size")(hidden)
for outputs in ([kind, size], {"kind": kind, "size": size}):
    model = keras.Model(inputs, outputs)
    model.compile(
        optimizer="adam",
        loss={"kind": "sparse_categorical_crossentropy", "size": "mse"},
        loss_weights={"kind": 1.0, "size": 0.5},
        metrics={"kind": ["accuracy"]},
    )
    history = model.fit(x, {"kind": kinds, "size": sizes}, epochs=3, verbose=0)
    print(history.history)
