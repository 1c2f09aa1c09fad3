"""What every test here shares: property tests have no deadline of their own.

The time of one example says more about the machine than about the law; a test that
hangs meets the time limit of pytest.
"""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile(
    "trimtab",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("trimtab")
