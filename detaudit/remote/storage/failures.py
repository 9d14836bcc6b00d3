"""What the error of a bucket's library means. Each library has its own; none of them needs to be imported here."""

from collections.abc import Iterator

from detaudit import redact
from detaudit.errors import StorageError, StorageUnreachableError

_MOST_SHOWN = 300
"""Characters of an error."""

_LATER = (408, 409, 429)
"""HTTP statuses of requests that may succeed when they are sent again; 409: another was writing at that moment."""

_OF_NETWORK = {"ConnectionError", "HTTPClientError"}
"""Classes of botocore for which a request may be sent again. Neither is an OSError."""

_CREDENTIALS = (
    "Check that the credentials (for S3: AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY) are set and "
    "allow to list, read and write there."
)
_NETWORK = "Check the network, the address of the service and the credentials, then run the command again."


def is_taken(error: Exception) -> bool:
    """Return whether a file was not stored because its name is taken. Not every server names the condition."""
    return isinstance(error, FileExistsError) or _status(error) == 412


def is_no_bucket(error: Exception) -> bool:
    """Return whether a bucket of S3 does not exist, and not only a file in it."""
    return any(_code(one) == "NoSuchBucket" for one in _causes(error))


def is_final(error: Exception) -> bool:
    """Return whether the same request would fail again."""
    status = _status(error)
    if status is not None:
        return 400 <= status < 500 and status not in _LATER
    if isinstance(error, FileNotFoundError | PermissionError | NotImplementedError | TypeError | ValueError):
        return True
    classes = _classes(error)
    return "BotoCoreError" in classes and not classes & _OF_NETWORK


def of(doing: str, url: str, error: Exception) -> StorageError:
    """Return the error of ``doing`` something, such as "store a file in". ``url`` has no secrets."""
    reason = _reason(error)
    if _is_denied(error):
        return StorageError(f"not allowed to {doing} {url}: {reason}", _CREDENTIALS)
    if isinstance(error, FileNotFoundError):
        return StorageError(f"cannot {doing} {url}: not found: {reason}", "Check that the bucket, and the file, exist.")
    if is_final(error):
        return StorageError(f"cannot {doing} {url}: {reason}", "Correct the URL, or the settings of the service.")
    return StorageUnreachableError(f"cannot {doing} {url} now: {reason}", _NETWORK)


def _is_denied(error: Exception) -> bool:
    if isinstance(error, PermissionError) or _status(error) in (401, 403):
        return True
    return any(word in name for name in _classes(error) for word in ("Credential", "Token", "Profile"))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it was made from."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__


def _classes(error: Exception) -> set[str]:
    return {one.__name__ for one in type(error).__mro__}


def _response(error: BaseException) -> dict[str, dict[str, object]]:
    """Return what a server of S3 answered, ``{}`` if the error is not of its answer."""
    found = getattr(error, "response", None)
    return found if isinstance(found, dict) else {}


def _code(error: BaseException) -> object:
    return _response(error).get("Error", {}).get("Code")


def _status(error: Exception) -> int | None:
    """Return the HTTP status of what a server answered, None if the error is not of its answer."""
    for one in _causes(error):
        found = _response(one).get("ResponseMetadata", {}).get("HTTPStatusCode")
        for status in (found, getattr(one, "status_code", None), getattr(one, "code", None)):
            if isinstance(status, int):
                return status
    return None


def _reason(error: Exception) -> str:
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return redact.text(" ".join(text.split()))[:_MOST_SHOWN]
