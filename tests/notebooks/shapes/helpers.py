"""A module beside a notebook."""


def scale(x):
    return x / 2
