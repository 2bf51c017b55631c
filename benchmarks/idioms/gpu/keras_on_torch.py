"""Keras on PyTorch, which takes the GPU by itself."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np

keras.utils.set_random_seed(0)
x = np.random.normal(size=(600, 12)).astype("float32")
y = (x[:, 0] + x[:, 1] > 0).astype("int32")
model = keras.Sequential(
    [keras.layers.Dense(32, "relu"), keras.layers.Dropout(0.2), keras.layers.Dense(1, "sigmoid")]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(x, y, epochs=4, batch_size=32, validation_split=0.2, verbose=0)
print({name: [repr(float(one)) for one in values] for name, values in history.history.items()})
