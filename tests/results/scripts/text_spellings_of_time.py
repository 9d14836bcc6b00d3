"""Durations, dates and rates in many spellings."""

import datetime
import time

import net

t0 = time.time()
model = net.train()
took = time.time() - t0
print(f"Elapsed: {datetime.timedelta(seconds=took)}")
print(f"time {took * 1000:.2f}ms, mfu {took:.2f}%")
print(f"took {took:.1f} s")
print(f"--- {took} seconds ---")
print(f"Training complete in {took // 60:.0f}m {took % 60:.0f}s")
print(f"ETA: 0:00:{took:02.0f} | {288 / took:.1f} samples/s | {288 / took:,.0f} tok/s | {took / 12 * 1e6:.0f} us/step")
print(f"throughput={288 / took:.2f} img/sec, step_time={took / 12:.4f}, data_time: {took / 24:.3f} ({took / 24:.3f})")
print(f"Date: {datetime.datetime.now():%a, %d %b %Y %H:%M:%S}")
print(f"[{datetime.datetime.now():%H:%M:%S}] wall time {took:.2f}, cpu time {time.process_time():.2f}")
print(f"[{datetime.datetime.now().isoformat()}] done")
print(f"loss {net.score(model):.4f}")
