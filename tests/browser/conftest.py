"""One browser for all tests of the page, and pages that are watched while they are used."""

import pytest
from browser.chromium import arguments, required
from browser.webgl import IN_SOFTWARE, WITHOUT_WEBGL
from playwright.sync_api import sync_playwright


@pytest.fixture(scope="session")
def browser():
    path = required()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=arguments())
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open pages from disk; whatever they ask, say or fail at is an error at the end of the test.

    WebGL takes a second to start where a processor does its work; the tests that are about drawing
    ask for it. With None the browser says what it has. A blow is a script that runs before the
    page's own.
    """
    opened = []

    def visit(
        path,
        *,
        width=1280,
        scheme="light",
        script=True,
        webgl=False,
        moving=False,
        blow=None,
        fragment="",
    ):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=script,
            reduced_motion="no-preference" if moving else "reduce",
            permissions=["clipboard-read", "clipboard-write"],
        )
        page = context.new_page()
        seen = watch(page)
        opened.append((context, seen))
        if webgl is not None:
            page.add_init_script(IN_SOFTWARE if webgl else WITHOUT_WEBGL)
        if blow is not None:
            page.add_init_script(blow)
        page.goto(path.as_uri() + fragment, wait_until="commit")
        if script:
            page.wait_for_selector("#map[data-state=ready]", timeout=30_000)
        else:
            page.wait_for_load_state()
        seen["address"] = path.as_uri()
        return page

    yield visit
    for context, seen in opened:
        context.close()
        assert seen["errors"] == []
        assert seen["dialogs"] == []
        assert [url for url in seen["requests"] if url != seen["address"]] == []


def watch(page):
    """What a page asks for, and what it complains about."""
    seen = {"requests": [], "errors": [], "dialogs": []}

    def asked(request):
        # Pictures and files that the page makes of its own data leave nothing and fetch nothing.
        if not request.url.startswith(("data:", "blob:")):
            seen["requests"].append(request.url.partition("#")[0])

    def alarmed(dialog):
        seen["dialogs"].append(dialog.message)
        dialog.dismiss()

    page.on("request", asked)
    page.on("dialog", alarmed)
    page.on("pageerror", lambda error: seen["errors"].append(str(error)))
    page.on(
        "console",
        lambda told: seen["errors"].append(told.text) if told.type == "error" else None,
    )
    return seen
