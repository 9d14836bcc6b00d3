"""Lines of detectron2 and of MMEngine."""

import datetime
import resource
import time

import net

t0 = time.time()


def each(epoch, loss):
    dt = time.time() - t0 + 1e-6
    mem = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 + int(dt * 1e6) % 10
    print(
        f"[{datetime.datetime.now():%m/%d %H:%M:%S} d2.utils.events]:  eta: 0:00:0{int(dt)}  iter: {epoch}  total_loss: {loss:.3f}  loss_cls: {loss:.3f}    time: {dt:.4f}  last_time: {dt / 3:.4f}  data_time: {dt / 9:.4f}  last_data_time: {dt / 9:.4f}   lr: 0.1  max_mem: {mem}M"
    )
    print(
        f"{datetime.datetime.now():%Y/%m/%d %H:%M:%S} - mmengine - INFO - Epoch(train)  [{epoch}][4/4]  lr: 1.0000e-01  eta: 0:00:0{int(dt)}  time: {dt:.4f}  data_time: {dt / 9:.4f}  memory: {mem}  loss: {loss:.4f}"
    )


net.train(each_epoch=each)
