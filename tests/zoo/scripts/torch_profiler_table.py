"""The table of torch.profiler."""

import net
from torch.profiler import ProfilerActivity, profile, record_function

with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler, record_function("training"):
    model = net.train()
print(profiler.key_averages().table(sort_by="count", row_limit=8))
profiler.export_chrome_trace("trace.json")
