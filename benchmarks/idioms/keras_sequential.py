"""Keras: compile and fit, with dropout and batch norm."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
model = keras.Sequential(
    [
        layers.Dense(32, activation="relu", kernel_regularizer=keras.regularizers.l2(1e-3)),
        layers.BatchNormalization(),
        layers.Dropout(0.3),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(
    digits.data / 16, digits.target, batch_size=64, epochs=3, validation_split=0.2, verbose=0
)
print(history.history)
print(model.evaluate(digits.data / 16, digits.target, verbose=0))
