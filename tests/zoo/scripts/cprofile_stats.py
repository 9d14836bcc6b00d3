"""cProfile: a table on stdout, and its own file."""

import cProfile
import pstats

import net

with cProfile.Profile() as profile:
    model = net.train()
profile.dump_stats("train.prof")
pstats.Stats(profile).strip_dirs().sort_stats("ncalls", "name").print_stats(5)
