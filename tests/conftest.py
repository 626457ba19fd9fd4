"""Shared settings: deterministic hypothesis, the oracles on the path, and the cores that pytest's workers share."""

import os
import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

from prudent.runtime import limits
from strategies import examples

settings.register_profile(
    "daily",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("search", settings.get_profile("daily"), derandomize=False)
settings.load_profile("daily" if examples(1) == 1 else "search")

# A run in the background of a shell inherits that Ctrl-C is ignored; the tests of it need it, in their children too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Workers share the cores: threads that wait for each other on cores that are busy take time from other tests.  Tests of
# threads say how many they mean.
share = max(limits.cores() // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), 1)
limits.cores = lambda: share
