"""The platform `native` of PlatformIO, for tests without its registry."""

from platformio.public import PlatformBase


class NativePlatform(PlatformBase):
    """Has no boards and no packages."""
