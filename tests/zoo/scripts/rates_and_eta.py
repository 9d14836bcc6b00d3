"""Rates and remaining times in the spellings of frameworks for detection and speech."""

import datetime
import time

import net

started = time.time()


def each_epoch(epoch, loss):
    took = (time.time() - started) / epoch
    eta = str(datetime.timedelta(seconds=int(took * (8 - epoch))))
    print(
        f"Epoch: [{epoch}]  [ 0/12]  eta: {eta}  lr: 0.100000  loss: {loss:.4f} ({loss:.4f})  time: {took:.4f}  data: {took / 9:.4f}  max mem: 0"
    )
    print(
        f"INFO iter: {epoch}  total_loss: {loss:.3f}  time: {took:.4f} s/it  data_time: {took / 9:.4f}  lr: 0.1  {12 / took:.2f}it/s"
    )
    print(
        f"Epoch {epoch} Batch 12/12 Speed {96 / took:.2f} samples/sec Throughput={4 / took:.1f} Hz loss={loss:.4f} ETA {took:.0f}s"
    )
    print(
        f"| epoch {epoch:3d} | 12/12 batches | ms/batch {took * 83:5.2f} | loss {loss:5.2f} | {took:.1f} sec/epoch | {took / 60:.2f} min |"
    )


net.train(epochs=8, each_epoch=each_epoch)
print(
    f"Total time: {datetime.timedelta(seconds=int(time.time() - started))} ({(time.time() - started) / 8:.4f} s / epoch)"
)
