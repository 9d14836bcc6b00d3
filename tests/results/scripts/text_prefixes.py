"""Lines with the prefixes of absl, of NCCL and of launchers."""

import datetime
import os
import socket
import threading

import net

now, pid, host = datetime.datetime.now(), os.getpid(), socket.gethostname()
print(f"I{now:%m%d %H:%M:%S.%f} {threading.get_native_id():7d} train.py:12] starting")
print(f"{host}:{pid}:{threading.get_native_id()} [0] NCCL INFO Bootstrap: using lo")
print(f"{now:%Y-%m-%d %H:%M:%S.%f}: I core/platform/cpu_feature_guard.cc:182] This binary is optimized")
model = net.train(each_epoch=lambda epoch, loss: print(f"[rank0]: {datetime.datetime.now():%H:%M:%S} loss {loss:.4f}"))
print(f"[{pid}] loss {net.score(model):.4f}")
