"""How the NumPy backend's compiled groups run: the numbers of processors, and what `schedules.cpu` takes and builds."""

from __future__ import annotations

from typing import Final

from xarr.compiler.schedule import Schedule
from xarr.compiler.schedules.cpu.builders import BUILDERS, LIMITS
from xarr_numpy.compiled.drafts import prepare
from xarr_numpy.processor import PROCESSOR

SCHEDULE: Final = Schedule(PROCESSOR, BUILDERS, LIMITS, prepare)
