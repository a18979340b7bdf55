r"""Which file names a bundle may hold.

Knows names only. Names are relative, `/`-separated and compared byte for byte. Refused are `..` and other
components that a file system would resolve, backslashes and control characters (which `sha256sum` would have
to escape, and which a terminal might obey), characters that are not seen but change how others are (such as
those that turn the direction of writing), and what is not UTF-8.
"""

from __future__ import annotations

import unicodedata


def fault(name: str) -> str | None:
    """Say what is wrong with a name, None if nothing is.

    Args:
        name: from a listing, or as the operating system gave it (bytes that are not UTF-8 as surrogates).
    """
    if not name:
        return "empty name"
    if name.startswith("/"):
        return "absolute name"
    if any(component in {"", ".", ".."} for component in name.split("/")):
        return "component that is empty, '.' or '..'"
    if "\\" in name:
        return "backslash in the name"
    categories = {unicodedata.category(character) for character in name}
    if "Cs" in categories:
        return "name is not UTF-8"
    unseen = categories & {"Cc", "Cf", "Zl", "Zp"}
    return "control or invisible character, or line break, in the name" if unseen else None


def printable(name: str) -> str:
    """Give a name as it can safely be shown: control characters and bytes that are not UTF-8 as escapes."""
    if fault(name) is None:
        return name
    text = name.encode("utf-8", "surrogateescape" if _from_system(name) else "surrogatepass")
    shown = text.decode("utf-8", "backslashreplace")
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in shown)


def _from_system(name: str) -> bool:
    return all("\udc80" <= one <= "\udcff" for one in name if unicodedata.category(one) == "Cs")
