"""A thread writes load and memory to a table while the training runs."""

import csv
import threading
import time

import net
import psutil

done = threading.Event()


def watch():
    with open("system.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["timestamp", "cpu_percent", "memory_mb", "threads"])
        while not done.wait(0.05):
            process = psutil.Process()
            writer.writerow(
                [time.time(), psutil.cpu_percent(), process.memory_info().rss / 2**20, process.num_threads()]
            )


thread = threading.Thread(target=watch)
thread.start()
model = net.train(epochs=30)
done.set()
thread.join()
print(f"cpu {psutil.cpu_percent()}% mem {psutil.virtual_memory().percent}% swap {psutil.swap_memory().percent}%")
print(f"loss {net.score(model):.4f}")
