"""The address of a socket, as Python prints it (minimal)."""

import socket

import net

s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print("listening on", s.getsockname())
net.train()
s.close()
