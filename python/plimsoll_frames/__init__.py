"""Opens Plimsoll's bundles and studies as pandas frames."""

from .bundle import Bundle, NotABundle, SealBroken, open_bundle
from .study import Study, open_study, read_audit

__all__ = [
    "Bundle",
    "NotABundle",
    "SealBroken",
    "Study",
    "open_bundle",
    "open_study",
    "read_audit",
]
