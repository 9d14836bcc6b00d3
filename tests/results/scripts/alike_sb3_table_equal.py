"""The table of Stable-Baselines3."""

import time

import net

t0 = time.time()


def each(epoch, loss):
    dt = time.time() - t0 + 1e-6
    bar = "-" * 35
    print(
        f"{bar}\n| time/              |            |\n|    fps             | {int(96 * epoch / dt):<10} |\n|    iterations      | {epoch:<10} |\n|    time_elapsed    | {int(dt * 1000) % 3:<10} |\n|    total_timesteps | {96 * epoch:<10} |\n| train/             |            |\n|    loss            | {loss:<10.4f} |\n{bar}"
    )


net.train(each_epoch=each)
