"""Processes print parts of lines, which are torn by each other."""

import multiprocessing
import os
import random
import time

import net


def work(number):
    for step in range(10):
        for part in (f"worker {number} ", f"step {step} ", "done\n"):
            os.write(1, part.encode())
            time.sleep(random.random() / 300)


if __name__ == "__main__":
    model = net.train()
    workers = [multiprocessing.get_context("fork").Process(target=work, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"loss {net.score(model):.4f}")
