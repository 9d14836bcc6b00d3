"""Memory and load, as monitors write them."""

import json
import os
import resource

import net

model = net.train()
with open("system.json", "w") as file:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    rss = int(open("/proc/self/statm").read().split()[1]) * 4096
    json.dump(
        {
            "peak_memory_mb": usage.ru_maxrss / 1024,
            "rss_bytes": rss,
            "cpu_time": usage.ru_utime,
            "cpu_percent": 100 * usage.ru_utime / (usage.ru_utime + usage.ru_stime + 1),
            "load_avg": os.getloadavg()[0],
            "loss": net.score(model),
        },
        file,
    )
print(f"memory: {rss / 2**20:.1f} MB (max {usage.ru_maxrss / 1024:.1f} MiB)")
