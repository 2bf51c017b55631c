import numpy as np
import torch
from sklearn.datasets import load_digits


def load(seed, test_share=0.25):
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.images))
    images = torch.tensor(digits.images[order] / 16.0, dtype=torch.float32)[:, None]
    labels = torch.tensor(digits.target[order])
    held_out = int(len(order) * test_share)
    return (images[held_out:], labels[held_out:]), (images[:held_out], labels[:held_out])
