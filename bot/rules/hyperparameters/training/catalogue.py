"""What the frameworks' optimisers are called, which rates suit them and what they accept."""

from __future__ import annotations

from dataclasses import dataclass

_TORCH = frozenset({"lr", "weight_decay", "maximize", "foreach", "differentiable", "params"})
_KERAS = frozenset({
    "learning_rate", "weight_decay", "clipnorm", "clipvalue", "global_clipnorm", "use_ema", "name",
    "ema_momentum", "ema_overwrite_frequency", "loss_scale_factor", "gradient_accumulation_steps",
})  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """An optimiser: its classes, its default rates, the rates that people use with it, and the
    parameters of its own.
    """

    torch: str
    keras: str
    torch_rate: float
    keras_rate: float
    usual: tuple[float, float]
    torch_own: frozenset[str] = frozenset()
    keras_own: frozenset[str] = frozenset()

    def rate(self, framework: str) -> float:
        """The framework's default."""
        return self.torch_rate if framework == "torch" else self.keras_rate

    def own(self, framework: str) -> frozenset[str]:
        """Every parameter that it accepts."""
        return _TORCH | self.torch_own if framework == "torch" else _KERAS | self.keras_own


_BETAS = frozenset({"betas", "eps", "amsgrad", "capturable", "fused"})
_MOMENTS = frozenset({"beta_1", "beta_2", "epsilon", "amsgrad"})

KINDS: dict[str, Kind] = {
    "sgd": Kind(
        "SGD", "SGD", 0.001, 0.01, (1e-3, 1.0),
        frozenset({"momentum", "dampening", "nesterov"}), frozenset({"momentum", "nesterov"}),
    ),
    "rmsprop": Kind(
        "RMSprop", "RMSprop", 0.01, 0.001, (1e-4, 1e-2),
        frozenset({"alpha", "eps", "momentum", "centered"}),
        frozenset({"rho", "momentum", "epsilon", "centered"}),
    ),
    "adam": Kind("Adam", "Adam", 0.001, 0.001, (1e-4, 1e-2), _BETAS, _MOMENTS),
    "adamw": Kind("AdamW", "AdamW", 0.001, 0.001, (1e-4, 1e-2), _BETAS, _MOMENTS),
    "nadam": Kind("NAdam", "Nadam", 0.002, 0.001, (1e-4, 1e-2), _BETAS, _MOMENTS - {"amsgrad"}),
    "adamax": Kind("Adamax", "Adamax", 0.002, 0.001, (1e-4, 1e-2), _BETAS, _MOMENTS - {"amsgrad"}),
    "adagrad": Kind(
        "Adagrad", "Adagrad", 0.01, 0.001, (1e-3, 0.5),
        frozenset({"lr_decay", "eps"}), frozenset({"initial_accumulator_value", "epsilon"}),
    ),
    "adadelta": Kind(
        "Adadelta", "Adadelta", 1.0, 0.001, (0.05, 2.0),
        frozenset({"rho", "eps"}), frozenset({"rho", "epsilon"}),
    ),
}  # fmt: skip

CLASSES: dict[str, str] = {
    f"{package}.{name}": value
    for value, kind in KINDS.items()
    for package, name in (("torch.optim", kind.torch), ("keras.optimizers", kind.keras))
}
"""The full name of each class with its canonical name."""

OTHERS = frozenset({
    "torch.optim.LBFGS", "torch.optim.RAdam", "torch.optim.ASGD", "torch.optim.Rprop",
    "torch.optim.SparseAdam", "torch.optim.Adafactor", "keras.optimizers.Lion",
    "keras.optimizers.Ftrl", "keras.optimizers.Lamb", "keras.optimizers.Adafactor",
    "keras.optimizers.LossScaleOptimizer", "torch.optim.Muon", "keras.optimizers.Muon",
})  # fmt: skip
"""Optimisers that a program may have and that no patch chooses."""
