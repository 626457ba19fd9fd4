"""How long from a move of the alpha slider to redrawn numbers, measured in a real browser.

    python benchmarks/web_latency.py [MOVES]

Starts a server of its own, opens the page in Debian's Chromium, and moves the slider to one new position after the
other, as a hand does that waits for the answer.  What is timed, by the page's own clock: from the slider's input event
to the moment the numbers of the exact plan are in the document, and to the frame after, in which they are painted.
Every position is new, so no answer comes from what the server keeps.
"""

import shutil
import statistics
import subprocess
import sys
import threading

AIMS = {"betting-game": 150.0, "deep-sea-treasure": None, "inventory-control": 400.0}  # milliseconds, median

MOVE = """(position) => new Promise((resolve, reject) => {
  const slider = document.getElementById("alpha"), card = document.getElementById("plan-exact");
  let begun = 0;
  const watch = new MutationObserver(() => {
    const chosen = document.getElementById("alpha-number").value;
    if (card.classList.contains("stale") || card.dataset.alpha !== chosen) return;
    watch.disconnect();
    const written = performance.now() - begun;
    requestAnimationFrame(() => setTimeout(() => resolve([written, performance.now() - begun]), 0));
  });
  watch.observe(card, { attributes: true, subtree: true, childList: true, characterData: true });
  setTimeout(() => reject(new Error("no new numbers within 20 seconds")), 20000);
  slider.value = position;
  begun = performance.now();
  slider.dispatchEvent(new Event("input", { bubbles: true }));
})"""


def serve() -> tuple[subprocess.Popen[str], str]:
    """Start a server; return it and its address."""
    call = [sys.executable, "-m", "prudent.apps.cli.main", "serve", "--port", "0"]
    process = subprocess.Popen(call, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "the page is " in line:
            threading.Thread(target=shutil.copyfileobj, args=(process.stderr, sys.stderr), daemon=True).start()
            return process, line.split("the page is ")[1].split()[0]
    raise SystemExit("the server did not start")


def main(moves: int) -> None:
    """Print the table."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("no chromium on the PATH: apt-get install chromium")
    process, address = serve()
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            print(f"{'':<20}{'moves':>7}{'median':>9}{'90%':>9}{'most':>9}{'painted':>9}   aim (ms, median)")
            for model, aim in AIMS.items():
                page = browser.new_page()
                page.goto(f"{address}/?model={model}&alpha=0.2")
                page.wait_for_function("() => document.querySelector('#curve.js-plotly-plot')", timeout=120_000)
                page.wait_for_function("() => !document.querySelector('.plan.stale')", timeout=120_000)
                positions = [40 + (67 * i) % 191 for i in range(moves)]  # all over the slider, none twice
                times = [page.evaluate(MOVE, position) for position in positions]
                written, painted = (sorted(column) for column in zip(*times, strict=True))
                middle = statistics.median(written)
                met = "" if aim is None else f"{aim:g}: {'met' if middle < aim else 'MISSED'}"
                print(
                    f"{model:<20}{moves:>7}{middle:>9.0f}{written[int(0.9 * moves)]:>9.0f}{written[-1]:>9.0f}"
                    f"{statistics.median(painted):>9.0f}   {met}",
                    flush=True,
                )
                page.close()
            browser.close()
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
