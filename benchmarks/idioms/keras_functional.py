"""Keras: two inputs, a skip connection, ops on tensors, and callbacks."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
a, b = rng.normal(size=(300, 6)).astype("float32"), rng.normal(size=(300, 4)).astype("float32")
y = (a.sum(1) > b.sum(1)).astype("float32")
left, right = keras.Input((6,)), keras.Input((4,))
x = ops.relu(layers.Dense(8)(left))
z = layers.Dense(8, activation="tanh")(right)
x = layers.Add()([x, z])
x = layers.Concatenate()([layers.Dense(8, activation="gelu")(x), z])
model = keras.Model([left, right], layers.Dense(1, activation="sigmoid")(x))
model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "binary_crossentropy", metrics=["accuracy"])
callbacks = [
    keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True),
    keras.callbacks.ReduceLROnPlateau(patience=1),
]
history = model.fit(
    [a, b], y, epochs=5, validation_data=([a, b], y), callbacks=callbacks, verbose=0
)
print(history.history)
