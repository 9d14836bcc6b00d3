"""The line of time -v (minimal)."""

import resource

import net

net.train()
print(f"Maximum resident set size (kbytes): {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}")
