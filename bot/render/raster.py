"""Pictures as PNG, by resvg. Letters come from the fonts of the machine; without any, a picture has
its lines alone.
"""

ZOOM = 2


def png(svg: str) -> bytes:
    """An SVG as PNG, at twice its size for sharp screens."""
    import resvg_py  # only a command that writes a picture pays for it

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=ZOOM))
