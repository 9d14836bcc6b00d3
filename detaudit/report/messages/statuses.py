"""How a run that did not finish ended."""

from detaudit.model import Status

NAMES = {
    Status.OK: "finished",
    Status.FAILED: "failed",
    Status.TIMEOUT: "timed out",
    Status.NOT_RECORDED: "not recorded",
    Status.STOPPED: "stopped",
    Status.ENDED: "ended",
}
