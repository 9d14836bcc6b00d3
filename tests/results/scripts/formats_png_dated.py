"""An image that knows when it was made."""

import struct
import time
import zlib

import net


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


model = net.train()
pixels = (net.logits(model) * 20 + 128).clamp(0, 255).byte().numpy()
with open("image.png", "wb") as file:
    file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 32, 8, 0, 0, 0, 0)))
    file.write(chunk(b"tEXt", b"Creation Time\x00" + time.strftime("%Y:%m:%d %H:%M:%S").encode()))
    file.write(chunk(b"tIME", struct.pack(">HBBBBB", *time.gmtime()[:6])))
    file.write(chunk(b"IDAT", zlib.compress(b"".join(b"\x00" + row.tobytes() for row in pixels))))
    file.write(chunk(b"IEND", b""))
