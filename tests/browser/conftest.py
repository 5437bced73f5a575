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


@pytest.fixture(scope="session")
def tabs():
    """Pages that earlier tests have left, by what cannot be changed in them.

    A new one has the browser start a process, for longer than ours takes to be opened and used.
    """
    return {}


@pytest.fixture
def visit(browser, tabs, request):
    """Open pages from disk; whatever they ask, say or fail at is an error at the end of the test.

    WebGL takes a second to start where a processor does its work; the tests that are about drawing
    ask for it. With None the browser says what it has. A blow is a script that runs before the
    page's own.
    """
    opened = []
    failed = request.session.testsfailed

    def new_tab(script, webgl, blow):
        context = browser.new_context(
            java_script_enabled=script, permissions=["clipboard-read", "clipboard-write"]
        )
        page = context.new_page()
        if webgl is not None:
            page.add_init_script(IN_SOFTWARE if webgl else WITHOUT_WEBGL)
        if blow is not None:
            page.add_init_script(blow)
        return page

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
        kind = (script, webgl, blow)
        left = tabs.setdefault(kind, [])
        page = left.pop() if left else new_tab(*kind)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(
            media="screen",
            color_scheme=scheme,
            reduced_motion="no-preference" if moving else "reduce",
        )
        page.mouse.move(0, 0)
        seen, unwatch = watch(page)
        opened.append((kind, page, seen, unwatch))
        page.goto(path.as_uri() + fragment, wait_until="commit")
        if script:
            page.wait_for_selector("#map[data-state=ready]", timeout=30_000)
        else:
            page.wait_for_load_state()
        seen["address"] = path.as_uri()
        return page

    yield visit
    for kind, page, seen, unwatch in opened:
        if request.session.testsfailed > failed:
            page.context.close()  # with a key held down, or a question open
        else:
            for other in page.context.pages[1:]:
                other.close()
            page.goto("about:blank")
            unwatch()
            tabs[kind].append(page)
        assert seen["errors"] == []
        assert seen["dialogs"] == []
        assert [url for url in seen["requests"] if url != seen["address"]] == []


def watch(page):
    """What a page asks for and complains about, and what ends the watch."""
    seen = {"requests": [], "errors": [], "dialogs": []}

    def asked(request):
        # Pictures and files that the page makes of its own data leave nothing and fetch nothing.
        if not request.url.startswith(("data:", "blob:")):
            seen["requests"].append(request.url.partition("#")[0])

    def alarmed(dialog):
        seen["dialogs"].append(dialog.message)
        dialog.dismiss()

    def told(message):
        if message.type == "error":
            seen["errors"].append(message.text)

    heard = {
        "request": asked,
        "dialog": alarmed,
        "pageerror": lambda error: seen["errors"].append(str(error)),
        "console": told,
    }
    for event, hear in heard.items():
        page.on(event, hear)

    def unwatch():
        for event, hear in heard.items():
            page.remove_listener(event, hear)

    return seen, unwatch
