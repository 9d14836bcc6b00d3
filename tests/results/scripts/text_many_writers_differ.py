"""Processes print whole lines, in any order; one number among them differs."""

import multiprocessing
import random
import time

import net


def work(number):
    for step in range(20):
        time.sleep(random.random() / 100)
        print(f"worker {number} step {step} total {number * step}", flush=True)
    if number == 2:
        print(f"worker 2 average {random.random():.6f}", flush=True)


if __name__ == "__main__":
    model = net.train()
    workers = [multiprocessing.get_context("fork").Process(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"loss {net.score(model):.4f}")
