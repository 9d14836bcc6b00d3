"""A time as an attribute after other attributes (minimal)."""

import time

import net

t0 = time.time()
net.train()
with open("report.xml", "w") as f:
    f.write(f'<?xml version="1.0"?>\n<testcase classname="a" name="b" time="{time.time() - t0:.4f}"/>\n')
