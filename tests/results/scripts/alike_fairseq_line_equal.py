"""The line of fairseq."""

import datetime
import time

import net

t0 = time.time()


def each(epoch, loss):
    dt = time.time() - t0 + 1e-6
    print(
        f"{datetime.datetime.now():%Y-%m-%d %H:%M:%S} | INFO | train_inner | epoch {epoch:03d}:     {epoch} / 3 loss={loss:.3f}, ppl={2**loss:.2f}, wps={96 / dt:.1f}, ups={4 / dt:.2f}, wpb=24, bsz=24, num_updates={4 * epoch}, lr=0.1, gnorm=1.0, train_wall={dt:.0f}, gb_free=12.{int(dt * 1e6) % 10}, wall={dt:.0f}"
    )


net.train(each_epoch=each)
