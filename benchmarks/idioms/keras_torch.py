"""Keras on PyTorch: fit, and a loop that calls the optimiser itself."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
import torch
from keras import layers

keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(256, 8)).astype("float32")
y = (x.sum(1) > 0).astype("int32")
model = keras.Sequential(
    [
        layers.Dense(16, activation="tanh"),
        layers.Dropout(0.2),
        layers.Dense(2, activation="softmax"),
    ]
)
model.compile(keras.optimizers.SGD(0.05), "sparse_categorical_crossentropy", metrics=["accuracy"])
print(model.fit(x, y, epochs=3, batch_size=32, verbose=0).history)

model = keras.Sequential([layers.Dense(16, activation="relu"), layers.Dense(2)])
optimizer = keras.optimizers.Adam(1e-2)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
data = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
for _ in range(3):
    for inputs, labels in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True):
        loss = loss_fn(labels, model(inputs, training=True))
        model.zero_grad()
        loss.backward()
        weights = list(model.trainable_weights)
        with torch.no_grad():
            optimizer.apply([one.value.grad for one in weights], weights)
        print(repr(loss.item()))
