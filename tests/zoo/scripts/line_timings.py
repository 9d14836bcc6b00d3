"""Stages with their times and shares, as a table at the end."""

import time

import net

times = {}


def timed(name, work, *args):
    started = time.perf_counter()
    result = work(*args)
    times[name] = time.perf_counter() - started
    return result


model = timed("training", net.train)
loss = timed("evaluation", net.score, model)
total = sum(times.values())
print(f"{'stage':12}{'time (s)':>12}{'%':>8}")
for name, took in times.items():
    print(f"{name:12}{took:12.4f}{100 * took / total:8.1f}")
print(f"{'total':12}{total:12.4f}{100.0:8.1f}")
print(f"loss {loss:.4f}")
