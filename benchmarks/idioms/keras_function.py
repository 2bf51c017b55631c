"""Keras: steps in a tf.function of the program's own, of a subclassed model with an own layer; then
two optimisers in one function that goes over the data itself.
"""

import keras
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(0)
x = tf.random.normal((256, 8), seed=1)
y = tf.cast(tf.reduce_sum(x, 1) > 0, tf.int32)
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(256, seed=1)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


class Scaled(layers.Layer):
    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], 16), name="kernel")
        self.bias = self.add_weight(shape=(16,), initializer="zeros", name="bias")

    def call(self, inputs):
        return tf.nn.relu(inputs @ self.kernel + self.bias)


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.last = Scaled(), layers.Dropout(0.2), layers.Dense(2)

    def call(self, inputs, training=False):
        return self.last(self.drop(self.first(inputs), training=training))


model, optimizer = Net(), keras.optimizers.Adam(1e-2)
model(x[:1])
optimizer.build(model.trainable_variables)


@tf.function
def step(inputs, labels):
    with tf.GradientTape() as tape:
        loss = loss_fn(labels, model(inputs, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for inputs, labels in data.batch(48).repeat(3):
    print(float(step(inputs, labels)).hex())

coder = keras.Sequential([layers.Dense(4, activation="tanh", kernel_regularizer="l2")])
decoder = keras.Sequential([layers.GaussianNoise(0.1), layers.Dense(8)])
coders, decoders = keras.optimizers.SGD(0.1, momentum=0.9), keras.optimizers.RMSprop(1e-3)


@tf.function
def epoch(losses):
    for inputs, _ in data.batch(32):
        with tf.GradientTape(persistent=True) as tape:
            restored = decoder(coder(inputs), training=True)
            wrong = tf.reduce_mean(tf.square(inputs - restored))
            total = wrong + tf.add_n(coder.losses)
        before = tape.gradient(total, coder.trainable_variables)
        after = tape.gradient(wrong, decoder.trainable_variables)
        coders.apply(before, coder.trainable_variables)
        decoders.apply(after, decoder.trainable_variables)
        losses.assign(tf.concat([losses[2:], [total, wrong]], 0))


coder(x[:1]), decoder(coder(x[:1]))
coders.build(coder.trainable_variables), decoders.build(decoder.trainable_variables)
losses = tf.Variable(tf.zeros(16))
for _ in range(3):
    epoch(losses)
    print(*(float(one).hex() for one in losses.numpy()))
