"""Getrusage (minimal)."""

import resource

import net

net.train()
u = resource.getrusage(resource.RUSAGE_SELF)
print(f"user time {u.ru_utime:.4f}")
print(f"ru_utime={u.ru_utime}, ru_maxrss={u.ru_maxrss}, ru_minflt={u.ru_minflt}, ru_nvcsw={u.ru_nvcsw}")
