"""Keras 3's convolutional network for small pictures, through its JAX back end,
trained as its users do: compile, then batches."""
import os

import numpy as np

from program import pictures


class Trained:
    """Keras makes and compiles its own program: one call is one batch."""

    def __init__(self, batch=64):
        os.environ["KERAS_BACKEND"] = "jax"
        import keras
        keras.utils.set_random_seed(0)
        layers = keras.layers
        self.data = pictures(0, batch, 28, 10)
        self.model = keras.Sequential([
            keras.Input((28, 28, 3)),
            layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
            layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2),
            layers.Flatten(), layers.Dense(128, activation="relu"),
            layers.Dense(10, activation="softmax")])
        self.model.compile(loss="sparse_categorical_crossentropy",
                           optimizer="adam")

    def step(self):
        return np.asarray(self.model.train_on_batch(*self.data))


def train(batch=64):
    return Trained(batch)
