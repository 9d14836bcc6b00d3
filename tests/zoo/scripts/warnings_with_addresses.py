"""Warnings and messages with addresses of objects, and a thread's identity."""

import threading
import warnings

import net


class Loader:
    """It has no __repr__."""


warnings.warn(f"{Loader()} was not closed", ResourceWarning, stacklevel=1)
warnings.warn(f"{Loader()} is slow in thread {threading.get_ident()}", stacklevel=1)
model = net.train()
print(f"<bound method of {Loader()}> {model.parameters()} {threading.current_thread()}")
