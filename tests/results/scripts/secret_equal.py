"""A token is printed in each run, beside a rate that differs."""

import time

import net

started = time.time()
model = net.train()
print(f"api_key=ghp_0123456789abcdefABCDEF0123456789abcd {288 / (time.time() - started):.1f} samples/s")
