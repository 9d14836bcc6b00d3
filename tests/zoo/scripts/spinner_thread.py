"""A spinner that a thread draws by backspaces until the training is done."""

import itertools
import sys
import threading

import net

done = threading.Event()


def spin():
    sys.stderr.write("training ")
    for sign in itertools.cycle("|/-\\"):
        sys.stderr.write(sign)
        sys.stderr.flush()
        stopped = done.wait(0.02)
        sys.stderr.write("\b")
        if stopped:
            break
    sys.stderr.write("done\n")


thread = threading.Thread(target=spin)
thread.start()
model = net.train(epochs=20)
done.set()
thread.join()
print(f"loss {net.score(model):.4f}")
