"""JUnit's XML with times, a host and a date."""

import datetime
import socket
import time

import net

t0 = time.time()
model = net.train()
dt = time.time() - t0
with open("report.xml", "w") as f:
    f.write(
        f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites><testsuite name="eval" errors="0" failures="0" tests="1" time="{dt:.3f}" timestamp="{datetime.datetime.now().isoformat()}" hostname="{socket.gethostname()}">\n'
        f'<testcase classname="test_eval" name="test_loss" time="{dt:.3f}"><properties><property name="loss" value="{net.score(model):.4f}"/></properties></testcase>\n</testsuite></testsuites>\n'
    )
