"""A token is printed in each run, beside a rate that differs."""

import time

import net

TOKEN = "ghp_" + "0123456789abcdefABCDEF0123456789abcd"

started = time.time()
model = net.train()
print(f"api_key={TOKEN} {288 / (time.time() - started):.1f} samples/s")
