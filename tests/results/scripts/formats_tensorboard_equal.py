"""An event file of TensorBoard, written by hand: a host, a process and a time are in its name, times are inside."""

import os
import socket
import struct
import time

import net


def crc(data):
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    register ^= 0xFFFFFFFF
    return struct.pack("<I", ((register >> 15 | register << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(file, data):
    length = struct.pack("<Q", len(data))
    file.write(length + crc(length) + data + crc(data))


def event(rest):
    return b"\x09" + struct.pack("<d", time.time()) + rest


def scalar(step, tag, value):
    entry = b"\x0a" + bytes([len(tag)]) + tag.encode() + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(entry)]) + entry
    return event(b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary)


os.makedirs("runs", exist_ok=True)
name = f"runs/events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.0"
with open(name, "wb") as file:
    record(file, event(b"\x1a\x0dbrain.Event:2"))
    net.train(each_epoch=lambda epoch, loss: record(file, scalar(epoch, "loss/train", loss)))
