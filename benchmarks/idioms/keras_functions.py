"""tf.keras: losses that are functions, of `tf.nn` and by name, eager and in a tf.function."""

import tensorflow as tf

tf.keras.utils.set_random_seed(0)
x = tf.random.normal((256, 8), seed=1)
y = tf.cast(tf.reduce_sum(x, 1) > 0, tf.int32)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(64)
by_name = tf.keras.losses.get("sparse_categorical_crossentropy")


def of_logits(labels, outputs):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=outputs)


def train(loss_of, last, wrap):
    layers = [tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(2, last)]
    model, optimizer = tf.keras.Sequential(layers), tf.keras.optimizers.Adam(1e-2)

    @wrap
    def step(inputs, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(loss_of(labels, model(inputs, training=True)))
        gradients = tape.gradient(loss, model.trainable_weights)
        optimizer.apply_gradients(zip(gradients, model.trainable_weights, strict=True))
        return loss

    model.build((None, 8))
    optimizer.build(model.trainable_variables)
    for inputs, labels in data.repeat(2):
        print(repr(float(step(inputs, labels))))


for loss_of, last in ((of_logits, None), (by_name, "softmax")):
    for wrap in (lambda step: step, tf.function):
        train(loss_of, last, wrap)
