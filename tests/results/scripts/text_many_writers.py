"""Processes print whole lines, in any order."""

import multiprocessing
import random
import time

import net


def work(number):
    for step in range(20):
        time.sleep(random.random() / 100)
        print(f"worker {number} step {step} total {number * step}", flush=True)


if __name__ == "__main__":
    model = net.train()
    workers = [multiprocessing.get_context("fork").Process(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"loss {net.score(model):.4f}")
