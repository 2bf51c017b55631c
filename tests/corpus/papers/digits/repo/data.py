import numpy as np
import torch
from sklearn.datasets import load_digits


def load(seed, test_size=0.25):
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.data))
    inputs = torch.tensor(digits.data[order] / 16.0, dtype=torch.float32)
    labels = torch.tensor(digits.target[order])
    held_out = int(len(order) * test_size)
    return (inputs[held_out:], labels[held_out:]), (inputs[:held_out], labels[:held_out])
