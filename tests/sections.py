"""Sections of a page that a command writes anew: what stands between a line that begins in one way and another line."""


class NoSection(Exception):
    """The page has no such section."""


def split(page, begin, end):
    """The text of `page` up to the line that begins so, that line included; what stands between it and `end`; and `end`
    with all after it."""
    text = page.read_text(encoding="utf-8")
    before, found, rest = text.partition(begin)
    marker, closed, rest = rest.partition("\n")
    old, ended, after = rest.partition(end)
    if not (found and closed and ended):
        raise NoSection(f"{page} has no section between lines {begin}...) and {end}")
    return f"{before}{found}{marker}\n", old, f"{end}{after}"


def write(page, before, written, after):
    """Puts `written` between the two."""
    page.write_text(f"{before}\n{written}\n{after}", encoding="utf-8")
