"""Processes that end when this one does, however it ends.

A pipe is open as long as this process lives, and a shell at its other end. Nothing
closes it but this process' end, or the end of what it started.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

# the status of what was started; a signal that ended it ends the shell too
_SHELL = """
exec 3<&0
"$@" </dev/null 3<&- &
p=$!
{ read -r _ <&3; kill -9 $p; } >/dev/null 2>&1 &
w=$!
exec 3<&-
wait $p
c=$?
kill $w
[ $c -le 128 ] || kill -$((c - 128)) $$
exit $c
"""


def tied(command: Sequence[str]) -> list[str]:
    """The command, killed when its standard input closes: give it a pipe. On Windows
    the command as it is.
    """
    if sys.platform == "win32":
        return list(command)
    return ["sh", "-c", _SHELL, "sh", *command]
