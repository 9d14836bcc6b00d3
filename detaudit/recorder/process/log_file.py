"""Append to a file of the recorder, even after the script closed all descriptors, as a daemon does at its start."""

from __future__ import annotations

import os

from ... import private
from . import handlers

_OPTIONS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)


class LogFile:
    """A file that only grows. Its descriptor is used only as long as it is one of this file.

    Otherwise the script has closed it, and its number may be that of a file of the script, which must not be touched.
    """

    def __init__(self, path: str, *, new: bool = False) -> None:
        """Open the file. Raises OSError, FileExistsError if it is to be ``new`` and exists."""
        self.path = path
        self._attach(private.opener(path, _OPTIONS | (os.O_EXCL if new else 0)))

    def _attach(self, descriptor: int) -> None:
        self._descriptor = descriptor
        found = os.fstat(descriptor)
        self._file = found.st_dev, found.st_ino

    def _is_own(self) -> bool:
        try:
            found = os.fstat(self._descriptor)
        except OSError as error:
            handlers.pass_on(error)
            return False
        return (found.st_dev, found.st_ino) == self._file

    def append(self, text: str) -> None:
        """Append ASCII text with one system call. Raises OSError if not all of it could be written."""
        if not self._is_own():
            self._attach(private.opener(self.path, _OPTIONS))
        data = text.encode("ascii")
        if os.write(self._descriptor, data) < len(data):
            raise OSError("not all of a line could be written")

    def close(self) -> None:
        """Close the file."""
        if self._is_own():
            os.close(self._descriptor)
