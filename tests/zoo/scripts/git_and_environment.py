"""What a training notes of its environment before it starts."""

import os
import platform
import socket
import sys
import tempfile

import net
import torch

print("Command:", " ".join(sys.argv))
print("PyTorch", torch.__version__, "Python", platform.python_version(), "on", platform.node())
print("Run directory:", os.getcwd(), "temporary:", tempfile.mkdtemp())
print(f"PID {os.getpid()}, parent {os.getppid()}, host {socket.gethostname()}, user {os.environ.get('USER', 'nobody')}")
print(f"load average: {os.getloadavg()}")
model = net.train()
print(f"loss {net.score(model):.4f}")
