"""Pictures of every view of the live page: wide and phone, light and dark.

    python benchmarks/web_screenshots.py [FOLDER]

Starts a server of its own and writes PNGs into the folder, ``report/screenshots`` by default, for people to look at.
"""

import shutil
import sys
from pathlib import Path

from web_latency import serve

READY = """() => document.querySelectorAll(".plan.stale").length === 0
  && ["curve", "frontier", "story"].every((name) => document.querySelector(`#${name}.js-plotly-plot`))
  && document.querySelector("#now h3")"""
WIDE, PHONE = (1300, 900), (390, 800)
BOLD = "document.querySelector('#now .safe') || document.getElementById('step').disabled"
VIEWS = [
    ("betting-game", "?model=betting-game&alpha=0.2&run=1", WIDE, "light", "bold"),
    ("betting-game-dark", "?model=betting-game&alpha=0.2&run=1", WIDE, "dark", "bold"),
    ("betting-game-phone", "?model=betting-game&alpha=0.2&run=1", PHONE, "light", "bold"),
    ("betting-game-phone-dark", "?model=betting-game&alpha=0.2&run=1", PHONE, "dark", "bold"),
    ("deep-sea-treasure", "?model=deep-sea-treasure&alpha=0.1&run=3", WIDE, "light", "end"),
    ("deep-sea-treasure-phone-dark", "?model=deep-sea-treasure&alpha=0.1&run=3", PHONE, "dark", "end"),
    ("inventory-control", "?model=inventory-control&alpha=0.05&run=2", WIDE, "light", "bold"),
    ("inventory-control-dark", "?model=inventory-control&alpha=0.05&run=2", WIDE, "dark", "bold"),
    ("autonomous-navigation", "?model=autonomous-navigation&alpha=0.05&run=4", WIDE, "light", "bold"),
    ("figure-2", "?model=figure-2&alpha=0.1&run=0", WIDE, "light", "bold"),
    ("error", "?model=betting-game&set=stages%3D0&alpha=0.1", WIDE, "light", "error"),
]

FRONT = {"betting-game": 1132, "betting-game-dark": 1132, "betting-game-phone": 1010, "betting-game-phone-dark": 1010}
"""Views whose upper part, so many pixels of it, is for the README and the documentation (``docs/pictures``)."""


def main(folder: Path) -> None:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("no chromium on the PATH: apt-get install chromium")
    folder.mkdir(parents=True, exist_ok=True)
    process, address = serve()
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for name, query, (width, height), scheme, until in VIEWS:
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.goto(f"{address}/{query}")
                if until == "error":
                    page.wait_for_selector("#problem:not([hidden])")
                else:
                    page.wait_for_function(READY, timeout=240_000)
                    if until == "end":
                        page.click("#all")
                    while until == "bold" and not page.evaluate(f"Boolean({BOLD})"):
                        page.click("#step")
                page.evaluate("window.scrollTo(0, 0)")
                page.wait_for_timeout(500)
                page.screenshot(path=folder / f"{name}.png", full_page=True)
                print(folder / f"{name}.png", flush=True)
                if name in FRONT:
                    clip = {"x": 0, "y": 0, "width": width, "height": FRONT[name]}
                    page.screenshot(path=folder / f"{name}-front.png", full_page=True, clip=clip)
                page.close()
            browser.close()
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "report/screenshots"))
