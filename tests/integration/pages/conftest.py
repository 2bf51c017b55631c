"""One site for all tests of the pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.pages.site import Site, site


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("pages")) as each:
        yield each
