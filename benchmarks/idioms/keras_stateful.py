"""Stateful recurrent layers of Keras, one of several cells, which take batches of one size alone,
and an activation of `tf.nn`.
"""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
walks = rng.normal(size=(480, 6, 1)).astype("float32")
ends = (walks.sum(axis=1) > 0).astype("float32")

model = keras.Sequential(
    [
        keras.Input(batch_shape=(48, 6, 1)),
        keras.layers.Bidirectional(keras.layers.LSTM(8, stateful=True, return_sequences=True)),
        keras.layers.RNN([keras.layers.GRUCell(6), keras.layers.LSTMCell(4)], stateful=True),
        keras.layers.Dense(1, activation=tf.nn.sigmoid),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
fitted = model.fit(walks, ends, batch_size=48, epochs=3, shuffle=False, verbose=0)
for loss in fitted.history["loss"]:
    print(repr(loss))
