"""Where plans and runs are kept that other machines read and write: folders, and URLs of buckets."""

import tempfile
from pathlib import Path

from detaudit.cli.options import OUTPUT, option
from detaudit.errors import UnknownNameError
from detaudit.remote.plan import Plan, read_plan
from detaudit.remote.storage import open_storage

storage_option = option("--out", "url", group=OUTPUT, required=True, metavar="URL",
                        help="Store the run here: a folder that machines share, or a URL such as "
                        "s3://bucket/folder.")  # fmt: skip


def read_plan_at(place: str) -> Plan:
    """Return the plan in a file, or at a URL. Raises UnknownNameError if there is none, and as read_plan does."""
    hint = "Write one with `detaudit plan`."
    if "://" not in place:
        try:
            return read_plan(Path(place).read_bytes(), place)
        except OSError as error:
            raise UnknownNameError(f"no plan {place}: {error.strerror}", hint) from error
    folder, _, name = place.rpartition("/")
    storage = open_storage(folder)
    if name not in storage.names():
        raise UnknownNameError(f"no plan {name} in {storage.url}", hint)
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary, "plan.json")
        storage.fetch(name, copy)
        return read_plan(copy.read_bytes(), place)
