"""Runs on other machines: what is to be run, one run of it anywhere, and the report of what came back."""

from detaudit.entry_points import Command

PLAN = Command(
    "Write down what is to be run, for machines that share nothing but a folder or a bucket.",
    "detaudit.remote.commands:plan",
)
WORKER = Command("Do one run of a plan on this machine, and store it.", "detaudit.remote.commands:worker")
JOIN = Command("Judge the runs of a plan that were stored.", "detaudit.remote.commands:join")
