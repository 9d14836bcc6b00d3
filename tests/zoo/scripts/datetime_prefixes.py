"""Each line begins with a date, in one of many spellings."""

import datetime
import time

import net

SPELLINGS = [
    "{}",
    "[{:%Y-%m-%d %H:%M:%S}]",
    "{:%d/%m/%Y, %H:%M:%S} -",
    "{:%b %d %H:%M:%S}:",
    "({:%I:%M:%S %p})",
    "{:%Y%m%d_%H%M%S} |",
    "{:%Y-%m-%dT%H:%M:%S.%fZ}",
]
for spelling in SPELLINGS:
    print(spelling.format(datetime.datetime.now()), "start")
net.train(
    epochs=len(SPELLINGS),
    each_epoch=lambda epoch, loss: print(
        SPELLINGS[epoch - 1].format(datetime.datetime.now()), f"epoch {epoch} loss {loss:.4f}"
    ),
)
print(time.ctime(), "end")
print(f"{time.time():.3f} end")
