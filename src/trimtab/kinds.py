"""The built-in kinds under a short name: ``from trimtab.kinds import Deployment``."""

from typing import TYPE_CHECKING, Any

from trimtab.api import kinds

if TYPE_CHECKING:
    from trimtab.api.kinds import *  # noqa: F403  (one list of names, kept there)

if not TYPE_CHECKING:
    __all__ = kinds.__all__

    def __getattr__(name: str) -> Any:
        if name not in kinds.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(kinds, name)

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
