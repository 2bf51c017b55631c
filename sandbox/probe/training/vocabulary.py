"""What PyTorch and Keras call losses and activations, each under the one name that traces,
diagnosis and repair use. The host reads it too: it imports nothing.
"""

TORCH_LOSSES = {
    "cross_entropy": ("cross_entropy", "CrossEntropyLoss", True),
    "nll": ("nll_loss", "NLLLoss", None),
    "bce": ("binary_cross_entropy", "BCELoss", False),
    "bce_logits": ("binary_cross_entropy_with_logits", "BCEWithLogitsLoss", True),
    "mse": ("mse_loss", "MSELoss", None),
    "mae": ("l1_loss", "L1Loss", None),
    "smooth_l1": ("smooth_l1_loss", "SmoothL1Loss", None),
    "huber": ("huber_loss", "HuberLoss", None),
    "kld": ("kl_div", "KLDivLoss", None),
    "poisson": ("poisson_nll_loss", "PoissonNLLLoss", None),
    "hinge": ("hinge_embedding_loss", "HingeEmbeddingLoss", None),
    "multi_margin": ("multi_margin_loss", "MultiMarginLoss", None),
    "multilabel_margin": ("multilabel_margin_loss", "MultiLabelMarginLoss", None),
    "multilabel_soft_margin": ("multilabel_soft_margin_loss", "MultiLabelSoftMarginLoss", True),
    "soft_margin": ("soft_margin_loss", "SoftMarginLoss", None),
}
"""The function of `torch.nn.functional`, the class of `torch.nn`, and whether it takes logits."""
OF_CLASSES = ("cross_entropy", "nll")
"""Losses of PyTorch whose targets are the indices of classes."""
BINARY = ("bce", "bce_logits", "binary_crossentropy")

KERAS_LOSSES = {
    "mse": "mean_squared_error", "mae": "mean_absolute_error", "kld": "kl_divergence",
    "mape": "mean_absolute_percentage_error", "msle": "mean_squared_logarithmic_error",
}  # fmt: skip
"""The losses of Keras that have a longer name there."""

TORCH_ACTIVATIONS = {
    "Identity": "linear", "ReLU": "relu", "ReLU6": "relu6", "LeakyReLU": "leaky_relu",
    "PReLU": "prelu", "RReLU": "rrelu", "ELU": "elu", "CELU": "celu", "SELU": "selu",
    "GELU": "gelu", "SiLU": "silu", "Mish": "mish", "Tanh": "tanh", "Hardtanh": "hardtanh",
    "Sigmoid": "sigmoid", "LogSigmoid": "log_sigmoid", "Hardsigmoid": "hard_sigmoid",
    "Hardswish": "hard_swish", "Softmax": "softmax", "LogSoftmax": "log_softmax",
    "Softplus": "softplus", "Softsign": "softsign",
}  # fmt: skip
"""The modules of `torch.nn`."""
KERAS_ACTIVATIONS = {
    "ReLU": "relu", "LeakyReLU": "leaky_relu", "PReLU": "prelu", "ELU": "elu",
    "Softmax": "softmax",
}  # fmt: skip
"""The layers of Keras that are an activation."""
RECTIFIERS = ("relu", "relu6")
"""Activations that a unit may never get out of."""
