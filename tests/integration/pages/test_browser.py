"""The pages in a real browser: nothing is wider than the window, nothing is refused, nothing is
complained about.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from tests.golden.stages import REPORTS
from tests.integration.pages.chromium import Browser, browser
from tests.integration.pages.site import Site, served

pytestmark = pytest.mark.browser
NAMES = [*REPORTS, "live", "queued", "waiting", "broken"]
WIDE = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
OUTSIDE = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') && !e.closest('pre')
  && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.tagName + '.' + e.className).join(' ')"""
CONTRAST = """(() => { const c = s => s.match(/[\\d.]+/g).slice(0, 3).map(Number).map(v => (v /= 255) <= .03928 ? v / 12.92 :
  ((v + .055) / 1.055) ** 2.4).reduce((a, v, i) => a + v * [.2126, .7152, .0722][i], 0);
  const back = c(getComputedStyle(document.querySelector('section')).backgroundColor);
  return Math.min(...[...document.querySelectorAll('section p, section h1 span, section a, section td, section dt')].map(e => {
  const ink = c(getComputedStyle(e).color); return (Math.max(ink, back) + .05) / (Math.min(ink, back) + .05); })); })()"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium") / "profile") as each:
        yield each


@pytest.mark.parametrize("name", NAMES)
def test_a_run_fits_every_window(pages: Site, tab: Browser, name: str) -> None:
    for width in (1280, 768, 360):
        tab.look(width, 800, dark=width == 768)
        tab.open(f"{pages.url}/runs/{pages.runs[name]}")
        assert (tab.value(WIDE), tab.value(OUTSIDE)) == (width, "")
        assert tab.complaints == []
        assert tab.value("document.styleSheets.length") == 1
        assert tab.value(
            "getComputedStyle(document.querySelector('section')).borderTopLeftRadius"
        ) in {"10px", "8px"}


@pytest.mark.parametrize("dark", [False, True])
def test_a_list_of_runs_fits_and_can_be_read(pages: Site, tab: Browser, dark: bool) -> None:
    address = f"{pages.url}/runs/{pages.runs['reproduced']}/repository"
    for width in (1280, 768, 360):
        tab.look(width, 800, dark=dark)
        tab.open(address)
        assert (tab.value(WIDE), tab.value(OUTSIDE)) == (width, "")
        assert tab.complaints == []
        assert tab.value(CONTRAST) >= 4.5
    assert tab.value("document.querySelectorAll('svg.verdicts rect').length") > 3
    assert tab.value("document.scripts.length") == 0


@pytest.mark.parametrize("path", ["/", "/nothing"])
def test_other_pages_fit_too(pages: Site, tab: Browser, path: str) -> None:
    for width in (1280, 360):
        tab.look(width, 800)
        tab.open(pages.url + path)
        assert (tab.value(WIDE), tab.value(OUTSIDE)) == (width, "")
        assert [each for each in tab.complaints if "404" not in each] == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "reproduced-with-control",
        "reproduced-with-proof",
        "inconclusive",
        "needs_info",
        "not_reproduced",
        "live",
        "broken",
    ],
)
def test_what_is_written_can_be_read(pages: Site, tab: Browser, name: str, dark: bool) -> None:
    tab.look(1280, 800, dark=dark)
    tab.open(f"{pages.url}/runs/{pages.runs[name]}")
    assert tab.value(CONTRAST) >= 4.5


def test_a_log_is_shown_as_text(pages: Site, tab: Browser) -> None:
    tab.look(1280, 800)
    tab.open(f"{pages.url}/runs/{pages.runs['reproduced']}/logs/1")
    assert "<script>alert(1)</script> é" in tab.value("document.body.innerText")
    assert tab.value("document.scripts.length") == 0


def test_this_browser_does_complain(tab: Browser, tmp_path: Path) -> None:
    page = "<meta name=viewport content='width=device-width'><p style='width:3000px'>x</p><img src=/gone.png><script>throw Error('x')</script>"
    open_to_all = {"Content-Security-Policy": "default-src * 'unsafe-inline'"}
    route = Route("/", lambda _: HTMLResponse(page, headers=open_to_all))
    with served(Starlette(routes=[route])) as url:
        tab.look(360, 800)
        tab.open(url)
        assert tab.value(WIDE) >= 3_000
        assert "P." in tab.value(OUTSIDE)
        assert len(tab.complaints) >= 2
        tab.shot(tmp_path / "page.png")
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")
