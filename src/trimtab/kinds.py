"""The built-in kinds under a short name: ``from trimtab.kinds import Deployment``."""

from trimtab.api import kinds
from trimtab.api.kinds import *  # noqa: F403  (one list of names, kept there)

__all__ = []
__all__ += kinds.__all__
