"""A benchmark of the model after its training, as IPython's %timeit prints it."""

import statistics
import timeit

import net

model = net.train()
took = [value / 20 * 1e6 for value in timeit.repeat(lambda: net.logits(model), number=20, repeat=5)]
print(
    f"{statistics.mean(took):.3g} µs ± {statistics.stdev(took):.3g} µs per loop (mean ± std. dev. of 5 runs, 20 loops each)"
)
print(f"Inference: {statistics.median(took) / 1000:.3f} ms/img | FPS: {1e6 / statistics.median(took):.1f}")
