"""Gradients of a Keras model on one batch, by each backend's own means."""

from . import keras_layers


def look(look):
    """The gradients of the trainable variables, the predictions, and what regularisers add to the
    loss.
    """
    backend = look.keras.backend.backend()
    differentiate = {"tensorflow": _tensorflow, "torch": _torch, "jax": _jax}[backend]
    found = _predicted(look) if _is_own(look) else differentiate(look)
    gradients, predictions, penalty = found
    return (
        [None if one is None else keras_layers.array(one) for one in gradients],
        predictions,
        penalty,
    )


def _is_own(look):
    """Whether the loss stands in a `train_step` of the program's own alone, or its targets do."""
    if look.data.probe[1] is None:
        return True
    model, usual = look.model, look.keras.Model.compute_loss
    compiled = look.loss or getattr(model, "_compile_loss", None) or model.losses
    return not compiled and getattr(type(model), "compute_loss", None) is usual


def _predicted(look):
    predictions = look.model(look.data.probe[0], training=False)
    return [None] * len(look.variables), predictions, None


def _forward(look):
    x, y = look.data.probe
    predictions = look.model(x, training=False)
    penalty = sum(float(keras_layers.array(one).sum()) for one in look.model.losses)
    if look.loss is not None:
        loss = look.loss(y, predictions)
    else:
        loss = look.model._compute_loss(x, y, predictions, None, training=False)
    return loss, predictions, penalty


def _tensorflow(look):
    import tensorflow

    with tensorflow.GradientTape() as tape:
        loss, predictions, penalty = _forward(look)
    return tape.gradient(loss, [one.value for one in look.variables]), predictions, penalty


def _torch(look):
    import torch

    with torch.enable_grad():
        loss, predictions, penalty = _forward(look)
        values = [one.value for one in look.variables]
        gradients = torch.autograd.grad(loss, values, allow_unused=True)
    return gradients, predictions, penalty


def _jax(look):
    import jax

    model, (x, y) = look.model, look.data.probe
    trainable = [one.value for one in model.trainable_variables]
    fixed = [one.value for one in model.non_trainable_variables]

    def loss_of(values):
        predictions, _, losses = model.stateless_call(
            values, fixed, x, return_losses=True, training=False
        )
        loss = (look.loss or model._compile_loss)(y, predictions) + sum(losses)
        return loss, (predictions, sum(losses))

    (_, (predictions, penalty)), gradients = jax.value_and_grad(loss_of, has_aux=True)(trainable)
    predictions = model(x, training=False)
    return gradients[: len(look.variables)], predictions, float(penalty)
