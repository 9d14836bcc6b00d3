"""Compare what left two runs: files value by value, text line by line."""

from detaudit.model.outputs import OutputDifference, Outputs


def differences(a: Outputs, b: Outputs) -> tuple[OutputDifference, ...]:
    """Return in what two runs differ, what decides first, then what is open, then what is only listed."""
    raise NotImplementedError
