"""Questions about how the Python that runs xarr was built."""

from __future__ import annotations

import sysconfig
from functools import cache


@cache
def is_free_threaded() -> bool:
    """Whether it was built to run threads at once (PEP 703), even if its global lock is switched on.

    Its objects have two counts of references each and another layout than those of other builds, so that
    neither tells what it tells there.
    """
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
