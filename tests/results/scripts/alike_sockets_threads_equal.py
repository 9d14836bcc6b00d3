"""A socket, a thread, a lock and a process are printed."""

import os
import socket
import threading

import net

s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s)
print("listening on", s.getsockname())
print(threading.current_thread(), threading.Lock())
net.train(
    each_epoch=lambda e, loss: print(
        f"{threading.current_thread().name} ident={threading.get_ident()} pid={os.getpid()} epoch {e} loss {loss:.4f}"
    )
)
s.close()
