"""Write the plots beside this file, two of each kind that show the same: ``python make.py``, with matplotlib installed.

The second is made as by another process on another day. A third shows another curve.
"""

import os
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

FOLDER = Path(__file__).parent
CURVES = {"first": [0.9, 0.5, 0.3], "second": [0.9, 0.5, 0.3], "other": [0.9, 0.5, 0.31]}


def plot(name: str) -> None:
    figure, axes = plt.subplots(figsize=(2, 1.5), dpi=50)
    axes.plot(CURVES[name], marker="o", label="loss")
    axes.fill_between(range(3), CURVES[name], hatch="/")
    axes.set_xticks([0, 2])
    axes.set_yticks([0, 1])
    for suffix in ("png", "svg", "pdf"):
        figure.savefig(FOLDER / f"{name}.{suffix}")
    plt.close(figure)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        plot(sys.argv[1])
    else:
        for day, name in enumerate(CURVES):
            os.environ["SOURCE_DATE_EPOCH"] = str(1_700_000_000 + day * 86_400)
            plot(name)
