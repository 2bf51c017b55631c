"""Takes the picture of a repair: an issue about a training that learns badly, the comment with its
diagnosis and its proven patch, and the pull request that comes of it, all from a real run.

`python tests/integration/pages/repair_picture.py` writes docs/images/repair.png. It trains with
PyTorch for some minutes.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from bot.report.svg import png, standalone, training  # noqa: E402
from tests.integration.pages.chromium import Browser, browser  # noqa: E402
from tests.integration.test_pull_requests import NAME, NUMBER  # noqa: E402
from tests.integration.test_repair_pull_requests import DIGITS, RealWorld  # noqa: E402
from tests.support.stand_in import GitHubServer  # noqa: E402

IMAGE = ROOT / ".github" / "images" / "repair.png"
WIDE, GAP, MOST = 600, 16, 4000
_SHOW = """(shown => {
  const boxes = [...document.querySelectorAll(".box")]
  boxes.forEach((box, at) => box.hidden = !shown.includes(at))
  for (const one of document.querySelectorAll("h1, h1 + p")) one.hidden = !shown.includes(0)
  for (const one of document.querySelectorAll("details"))
    one.open = /^(Diagnosis|The change as a diff)/.test(one.querySelector("summary").textContent)
  for (const one of document.querySelectorAll("img")) {
    one.src = "%(plot)s"
    one.style.maxWidth = "100%%"
  }
  document.body.style.margin = "4px 12px"
  document.body.style.maxWidth = "none"
  return document.body.scrollHeight + 28
})(%(shown)s)"""
_PAGE = """<!doctype html><meta charset=utf-8><style>
body{margin:0;background:#fff;font:600 17px/1.4 "Segoe UI","Noto Sans",Helvetica,Arial,sans-serif;color:#1f2328}
main{display:flex;flex-wrap:wrap;gap:%(gap)spx;padding:%(gap)spx;box-sizing:border-box;width:%(wide)spx}
section{border:1px solid #d1d9e0;border-radius:8px;overflow:hidden}p{margin:0;padding:8px 14px;background:#ddf4ff}
img{display:block}</style><main>%(panels)s</main>"""


def data(picture: bytes) -> str:
    """A picture as an address."""
    return f"data:image/png;base64,{base64.b64encode(picture).decode()}"


def panel(
    tab: Browser, title: str, address: str, shown: tuple[int, ...], wide: int, plot: str
) -> str:
    """Some boxes of a page of the stand-in GitHub, with what matters opened. `plot` is shown where
    the run's page would be asked for its picture.
    """
    tab.look(wide, MOST)
    tab.open(address)
    script = _SHOW % {"shown": list(shown), "plot": plot}
    tab.value(script)
    time.sleep(0.5)  # the plot is decoded
    tab.look(wide, int(tab.value(script)))
    with tempfile.TemporaryDirectory() as folder:
        tab.shot(path := Path(folder) / "panel.png")
        return f"<section><p>{title}</p><img src='{data(path.read_bytes())}'></section>"


def main() -> None:
    """The picture."""
    with (
        tempfile.TemporaryDirectory() as name,
        GitHubServer(echo=False) as server,
        browser(Path(name) / "profile") as tab,
    ):
        world = RealWorld(server, DIGITS)
        world.deliver("comment", "repair")
        assert world.asked() == "", world.sticky()
        drawn = training(world.found.diagnosis.curves)
        plot = data(png(standalone(drawn)))
        issue, pull = (f"{server.url}/{NAME}/{part}" for part in (f"issues/{NUMBER}", "pull/13"))
        both, whole = WIDE, 2 * WIDE + GAP + 2
        panels = [
            panel(tab, "1. An issue", issue, (0, 1), both, plot),
            panel(tab, "2. Diagnosis and proven patch", issue, (2,), both, plot),
            panel(tab, "3. Draft pull request", pull, (0,), whole, plot),
        ]
        texts = {"gap": GAP, "wide": whole + 2 * GAP + 2, "panels": "".join(panels)}
        (page := Path(name) / "all.html").write_text(_PAGE % texts)
        tab.look(whole + 2 * GAP + 2, MOST)
        tab.open(page.as_uri())
        tab.look(whole + 2 * GAP + 2, int(tab.value("document.querySelector('main').scrollHeight")))
        tab.shot(IMAGE)


if __name__ == "__main__":
    main()
