"""What every test here shares: property tests have no deadline of their own.

The time of one example says more about the machine than about the law; a test that
hangs meets the time limit of pytest.
"""

from __future__ import annotations

import os

import hypothesis

hypothesis.settings.register_profile(
    "trimtab",
    deadline=None,
    # In CI the same examples each time: new ones are for people, who can look at them.
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("trimtab")
