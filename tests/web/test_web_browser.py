"""The page in a real browser: Debian's Chromium, driven by Playwright."""

import json
import re
import shutil
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

import prudent
from prudent.apps.cli.main import main
from prudent.methods.registry import METHODS

for needs in ("httpx", "plotly", "starlette", "uvicorn"):
    pytest.importorskip(needs)
playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH: apt-get install chromium")
SECONDS = 60


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


class Visit:
    """A page, what it complained about, and where it went."""

    def __init__(self, browser, address, **options):
        self.address = address
        self.context = browser.new_context(accept_downloads=True, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(SECONDS * 1000)
        self.complaints, self.requests, self.refused = [], [], []
        self.page.on("console", lambda message: message.type in ("error", "warning") and self.complain(message.text))
        self.page.on("pageerror", lambda error: self.complain(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("response", lambda answer: answer.status >= 400 and self.refused.append(answer))

    def complain(self, text):
        self.complaints.append(text)

    def open(self, query=""):
        self.page.goto(f"{self.address}/{query}")
        return self

    def wait(self, condition):
        self.page.wait_for_function(f"() => {condition}")

    def ready(self, method="exact", alpha=0.2):
        self.wait(f"document.querySelector('#plan-{method}:not(.stale)')?.dataset.alpha === '{alpha}'")
        return self

    def drawn(self, name):
        self.wait(f"document.querySelector('#{name}.js-plotly-plot')")
        return self

    def number(self, key, method="exact"):
        return self.page.locator(f"#plan-{method} dd[data-key={key}]")

    def drag(self, position):
        self.page.evaluate(
            """(position) => {
                const slider = document.getElementById("alpha");
                slider.value = position;
                slider.dispatchEvent(new Event("input", { bubbles: true }));
            }""",
            position,
        )


@pytest.fixture
def visit(browser, running):
    made = []

    def begin(query="", **options):
        made.append(Visit(browser, running.address, **options).open(query))
        return made[-1]

    yield begin
    for each in made:
        inside = [url for url in each.requests if url.startswith((running.address, "blob:", "data:"))]
        assert each.requests and inside == each.requests, "a request left the host"
        complaints, expected = each.complaints, getattr(each, "expected", ())
        left = [text for text in complaints if not any(word in text for word in expected)]
        assert left == [], [answer.text() for answer in each.refused]
        each.context.close()


@cache
def shown(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments]).stdout


def printed(*arguments):
    return json.loads(shown(*arguments, "--json"))


def check_numbers(here, alpha, method="exact", model="betting-game"):
    asked = ("solve", model, "--alpha", alpha, "--method", method)
    theirs, text = printed(*asked), shown(*asked)
    for key in ("cvar", "var", "expected", "lower", "upper"):
        assert float(here.number(key, method).get_attribute("data-value")) == theirs[key]
        assert here.number(key, method).inner_text() in text or key == "lower"


def test_it_loads_and_shows_every_method_and_figure(visit):
    here = visit("?model=betting-game&alpha=0.2")
    shown = [name for name, about in METHODS.items() if about.shown]
    for method in shown:
        here.ready(method)
        check_numbers(here, 0.2, method)
    for name in ("curve", "frontier", "map", "story"):
        here.drawn(name)
    assert here.page.locator("#plans .js-plotly-plot").count() == len(shown)
    assert here.page.locator("#plans h3").all_inner_texts() == [METHODS[name].title for name in shown]
    assert here.page.locator("#take-method option").all_inner_texts() == shown
    edges = here.page.evaluate(
        "[...document.querySelectorAll('.plan')].map((card) => getComputedStyle(card).borderTopColor)"
    )
    assert len(set(edges)) == len(shown)
    assert "91.338" in here.page.inner_text("#headline")
    assert here.page.locator("dd[data-key=step]").all_inner_texts() == ["1"] * len(shown)
    here.page.click("summary")
    cell = here.page.locator("#digits tr", has=here.page.get_by_text("cvar", exact=True)).locator("td").nth(1)
    assert float(cell.inner_text()) == printed("solve", "betting-game", "--alpha", 0.2)["cvar"]


def test_a_method_without_a_colour_of_its_own_is_grey(visit):
    here = visit().ready()
    made, grey = here.page.evaluate(
        """async () => {
            const { colour } = await import("/static/charts.js"), { card } = await import("/static/cards.js");
            const made = document.body.appendChild(card({ name: "brand-new", title: "New", what: "anything" }));
            return [[colour("brand-new"), getComputedStyle(made).borderTopColor], colour("quiet")];
        }"""
    )
    assert made == [grey, "rgb({}, {}, {})".format(*(int(grey[i : i + 2], 16) for i in (1, 3, 5)))]


def test_dragging_alpha_shows_the_exact_numbers_and_the_chosen_points(visit):
    here = visit().ready().drawn("curve")
    seen = set()
    for position in (60, 100, 140, 239):
        here.drag(position)
        alpha = float(here.page.input_value("#alpha-number"))
        seen.add(alpha)
        here.ready("exact", f"{alpha:g}").ready("expected", f"{alpha:g}")
        check_numbers(here, alpha)
        check_numbers(here, alpha, "expected")
        assert f"alpha={alpha:g}" in here.page.url
        here.wait(f"document.getElementById('curve').data.at(-1).x[0] === {alpha:g}")
    assert len(seen) == 4
    here.ready("cvar-ev", f"{alpha:g}")
    check_numbers(here, alpha, "cvar-ev")


def test_a_quick_drag_ends_at_its_last_position(visit, running):
    here = visit("?model=inventory-control&alpha=0.2").ready()
    for position in range(20, 220, 4):
        here.drag(position)
    alpha = here.page.input_value("#alpha-number")
    here.ready("exact", alpha)
    check_numbers(here, float(alpha), model="inventory-control")


def test_by_keyboard_alone(visit):
    here = visit().ready()
    here.page.keyboard.press("Tab")
    assert here.page.evaluate("document.activeElement.className") == "skip"
    here.page.keyboard.press("Enter")
    here.page.focus("#alpha")
    before = here.page.input_value("#alpha-number")
    for _ in range(5):
        here.page.keyboard.press("ArrowLeft")
    after = here.page.input_value("#alpha-number")
    assert float(after) < float(before)
    here.ready("exact", after)
    here.wait(f"document.getElementById('story').dataset.alpha === '{after}'")
    here.page.focus("#step")
    here.page.keyboard.press("Enter")
    assert here.page.locator("#log li").count() == 1
    unnamed = here.page.evaluate(
        """() => [...document.querySelectorAll("input, select")].filter((control) =>
            !control.labels?.length && !control.getAttribute("aria-label")).map((control) => control.id)"""
    )
    assert unnamed == []


def test_domain_and_parameters(visit):
    here = visit().ready()
    here.page.select_option("#model", "deep-sea-treasure")
    here.wait("document.getElementById('about').dataset.model === 'deep-sea-treasure'")
    check_numbers(here, 0.2, model="deep-sea-treasure")
    here.page.fill("input[name=horizon]", "9")
    here.page.keyboard.press("Tab")
    theirs = printed("solve", "deep-sea-treasure", "--set", "horizon=9", "--alpha", 0.2)
    here.wait(f"Number(document.querySelector('#plan-exact dd').dataset.value) === {theirs['cvar']!r}")
    assert "set=horizon%3D9" in here.page.url
    here.expected = ("400",)  # the browser notes that an answer was an error
    here.page.fill("input[name=horizon]", "0")
    here.page.keyboard.press("Tab")
    here.page.wait_for_selector("#problem:not([hidden])")
    assert here.page.inner_text("#problem") == "horizon is 0; it must be a whole number, at least 1"


def test_a_gap_is_chosen_where_it_makes_a_difference(visit):
    here = visit("?model=autonomous-navigation&alpha=0.05").ready(alpha=0.05)
    assert here.page.is_visible("#relative-gap") and here.page.input_value("#relative-gap") == ""
    for gap, percent in (("0.01", 1), ("0.0001", 0.01)):
        here.page.select_option("#relative-gap", gap)
        theirs = printed("solve", "autonomous-navigation", "--alpha", 0.05, "--relative-gap", gap)
        here.wait(f"document.querySelector('#plan-exact dd[data-key=upper]').dataset.value === '{theirs['upper']}'")
        have = re.fullmatch(
            r"within gap: gap of (\S+)% between the bounds, costs rounded to steps of (\S+)",
            here.page.inner_text("#have"),
        )
        assert float(have[1]) == pytest.approx(100 * (1 - theirs["lower"] / theirs["upper"]), rel=0.05)
        assert float(have[1]) <= percent and float(have[2]) == theirs["step"]
        assert here.number("step").inner_text() == f"{theirs['step']:g}, rounded"
        assert "exact" not in here.page.inner_text("#plan-exact") + here.page.inner_text("#about")
        assert f"relative_gap={gap}" in here.page.url
        assert f"relative_gap={gap}" in here.page.get_attribute("#downloads a >> nth=0", "href")
        assert f"--relative-gap {gap} --json" in here.page.text_content("#command")
    here.wait("document.getElementById('story').dataset.alpha === '0.05'")
    again = visit(here.page.url.removeprefix(here.address + "/")).ready(alpha=0.05)
    assert again.page.input_value("#relative-gap") == "0.0001"
    assert again.number("upper").inner_text() == here.number("upper").inner_text()
    here.page.select_option("#model", "figure-2")
    here.wait("document.getElementById('about').dataset.model === 'figure-2'")
    assert not here.page.is_visible("#relative-gap") and "relative_gap" not in here.page.url


def test_the_best_plan_so_far_is_shown_until_another_question_stops_it(visit):
    here = visit("?model=autonomous-navigation&set=seed%3D7&alpha=0.2&relative_gap=1e-12")
    here.page.wait_for_selector("#plan-exact .badge.refining")
    assert here.page.locator("#plan-exact .badge").inner_text() == "refining…"
    here.wait("document.querySelector('#plan-exact .chart.js-plotly-plot')")
    assert here.page.inner_text("#have").startswith("refining, so far: gap of ")
    lower, upper = (float(here.number(key).get_attribute("data-value")) for key in ("lower", "upper"))
    theirs = printed("solve", "autonomous-navigation", "--set", "seed=7", "--alpha", 0.2)
    assert lower <= theirs["upper"] and theirs["lower"] <= upper
    assert "at least" in here.page.inner_text("#headline")
    here.page.select_option("#relative-gap", "")
    here.wait(f"document.querySelector('#plan-exact dd[data-key=upper]').dataset.value === '{theirs['upper']}'")
    here.ready()
    assert here.page.locator("#plan-exact .badge").inner_text() == "within gap"


def test_a_solve_that_takes_too_long_leaves_what_it_had(visit, get):
    best = get("solve", "autonomous-navigation", alpha=0.2, relative_gap=0.01).json() | {"refining": True}
    here = visit("?model=autonomous-navigation&alpha=0.2").ready()
    here.expected, held = ("504",), []
    here.page.route(
        re.compile("api/solve.*relative_gap=0&|api/solve.*relative_gap=0$"), lambda route: held.append(route)
    )
    here.page.route(re.compile("api/so-far"), lambda route: route.fulfill(json=best))
    here.page.select_option("#relative-gap", "0")
    here.page.wait_for_selector("#plan-exact .badge.refining")
    assert "--gap 0 --json" in here.page.text_content("#command")
    held[-1].fulfill(status=504, json={"error": "too long"})
    here.page.wait_for_selector("#plan-exact .badge:not(.refining)")
    assert here.page.inner_text("#problem") == "too long"
    assert float(here.number("upper").get_attribute("data-value")) == best["plan"]["upper"]
    assert here.page.inner_text("#have").startswith("within gap: gap of ")


LEFT_OVER = """() => [...document.querySelectorAll(".chart, #curve, #frontier, #map, #story")]
    .filter((place) => place.classList.contains("js-plotly-plot"))
    .filter((place) => place.classList.contains("waiting") || [...place.childNodes].some((node) => node.nodeType === 3))
    .map((place) => place.id || place.parentElement.id)"""


def test_models_back_and_forth_leave_nothing_behind(visit):
    here = visit("?model=betting-game&alpha=0.2").ready().drawn("curve").drawn("frontier").drawn("map")
    for model in ("deep-sea-treasure", "betting-game", "figure-2", "betting-game"):
        here.page.select_option("#model", model)
        here.wait(f"document.getElementById('about').dataset.model === '{model}'")
        for method in ("exact", "expected", "cvar-wc", "cvar-ev"):
            here.ready(method)
        here.drawn("curve").drawn("frontier").drawn("story")
        assert here.page.evaluate(LEFT_OVER) == []


def test_an_address_says_all(visit):
    here = visit("?model=inventory-control&set=stages%3D4&alpha=0.1&left=60&layer=7&run=5").ready("exact", 0.1)
    here.wait("document.getElementById('layer-value').textContent === '7'")
    assert here.page.input_value("#run") == "5" and here.page.input_value("input[name=stages]") == "4"
    left = here.page.inner_text("#left-value")
    again = visit(here.page.url.removeprefix(here.address + "/")).ready("exact", 0.1)
    again.wait("document.getElementById('layer-value').textContent === '7'")
    assert again.page.inner_text("#left-value") == left
    assert again.number("cvar").inner_text() == here.number("cvar").inner_text()


def test_the_budget_slider_changes_the_map(visit):
    here = visit("?model=betting-game&alpha=0.2").ready().drawn("map")
    before = here.page.evaluate("JSON.stringify(document.getElementById('map').data[0].z)")
    here.page.evaluate(
        """() => {
            const slider = document.getElementById("left");
            slider.value = 10;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    here.wait("document.getElementById('left-value').textContent.startsWith('10 of')")
    here.wait(f"JSON.stringify(document.getElementById('map').data[0].z) !== {json.dumps(before)}")
    assert "left=10" in here.page.url
    cells = here.page.evaluate("document.getElementById('map').data[0].z")
    plan = prudent.solve(prudent.domains.betting_game(), 0.2)
    assert cells[5][9] == plan.policy((9, 5), plan.policy.budget - 10)


def test_a_frontier_of_one_point_has_room_around_it(visit):
    here = visit("?model=figure-2&alpha=1").ready(alpha=1).drawn("frontier")
    here.wait("document.getElementById('frontier').data.length === 5")  # the line, and a point for each method
    for axis, trace in (("xaxis", "x"), ("yaxis", "y")):
        low, high = here.page.evaluate(f"document.getElementById('frontier').layout.{axis}.range")
        values = here.page.evaluate(f"document.getElementById('frontier').data.flatMap((each) => each.{trace})")
        assert len(values) == 5 and low < min(values) <= max(values) < high
        assert high - low == pytest.approx(2e-3 * max(values), rel=1e-6)


@pytest.mark.parametrize("model", ["deep-sea-treasure", "figure-2"])
def test_other_policy_views(visit, model):
    here = visit(f"?model={model}&alpha=0.1").ready("exact", 0.1)
    if model == "figure-2":
        here.page.wait_for_selector("#table:not([hidden]) td")
        assert "s1" in here.page.inner_text("#table")
    else:
        here.drawn("map")
        arrows = here.page.evaluate("document.getElementById('map').data[0].text")
        assert arrows and set(arrows) <= set("↑↗→↘↓↙←↖■")


def test_upload_a_model(visit, tmp_path):
    path = tmp_path / "mine.json"
    prudent.save(prudent.domains.betting_game(stages=4), path)
    here = visit().ready()
    here.page.set_input_files("#file", path)
    here.wait("document.getElementById('about').dataset.model?.startsWith('upload-')")
    assert here.page.locator("#model option:checked").inner_text() == "mine"
    theirs = printed("solve", path, "--alpha", 0.2)
    for key in ("cvar", "var", "expected", "lower", "upper"):
        assert float(here.number(key).get_attribute("data-value")) == theirs[key]
    assert re.search(r"model=upload-[0-9a-f]{32}&", here.page.url)
    again = visit(here.page.url.removeprefix(here.address + "/")).ready()
    assert again.number("cvar").inner_text() == here.number("cvar").inner_text()


@pytest.mark.parametrize("method", ["cvar-ev", pytest.param("cvar-wc", marks=pytest.mark.slow)])
def test_a_method_that_fails_says_so_and_nothing_else(visit, method):
    here = visit("?model=betting-game&alpha=0.2").ready(method).drawn("frontier")
    here.expected, told = ("400",), {"error": "too hard", "problems": ["too hard"]}
    here.page.route(re.compile(f"api/solve.*method={method}"), lambda route: route.fulfill(status=400, json=told))
    others = {METHODS[name].title for name, about in METHODS.items() if about.shown and name != method}
    for change in (lambda: here.drag(100), lambda: here.page.select_option("#model", "figure-2")):
        change()
        here.wait(f"document.querySelector('#plan-{method}:not(.stale) .chart.waiting')?.textContent === 'too hard'")
        card = here.page.inner_text(f"#plan-{method}")
        assert card.count("too hard") == 1 and "background" not in card and "…" not in card
        assert here.page.locator(f"#plan-{method} .badge").inner_text() == ""
        here.wait("!document.querySelector('#frontier.stale')")
        here.wait(f"document.getElementById('frontier').data?.length === {1 + len(others)}")
        shown = here.page.evaluate("document.getElementById('frontier').data.map((trace) => trace.name)")
        assert set(shown[1:]) == others


def test_the_frontier_is_dimmed_until_it_is_that_of_the_new_alpha(visit):
    here = visit("?model=betting-game&alpha=0.2").drawn("frontier")
    here.wait("!document.querySelector('#frontier.stale')")
    before = here.page.evaluate("JSON.stringify(document.getElementById('frontier').data[0].y)")
    held = []
    here.page.route(re.compile("api/frontier"), lambda route: held.append(route))
    with here.page.expect_request(re.compile("api/frontier")):
        here.drag(60)
    alpha = here.page.input_value("#alpha-number")
    here.ready("exact", alpha)
    assert float(here.page.evaluate("getComputedStyle(document.getElementById('frontier')).opacity")) < 0.5
    assert here.page.evaluate("JSON.stringify(document.getElementById('frontier').data[0].y)") == before
    held[-1].continue_()
    here.wait("!document.querySelector('#frontier.stale')")
    points = printed("frontier", "betting-game", "--alpha", alpha, "--tolerance", 0.01)["points"]
    here.wait(f"document.getElementById('frontier').data[0].y.length === {len(points)}")
    assert here.page.evaluate("document.getElementById('frontier').data[0].y") == [point["cvar"] for point in points]


def test_a_broken_model_is_explained_and_nothing_is_lost(visit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "broken.json"
    path.write_text('{"format": "prudent-ssp", "version": 1, "initial": "<b>a</b>", "goals": ["g"], "transitions": []}')
    here = visit().ready()
    here.expected = ("400",)
    here.page.set_input_files("#file", path)
    here.page.wait_for_selector("#problem:not([hidden])")
    theirs = CliRunner().invoke(main, ["solve", "broken.json", "--alpha", "0.2"])
    assert f"prudent: {here.page.inner_text('#problem')}\n" == theirs.stderr
    assert here.page.locator("#problem b").count() == 0
    check_numbers(here, 0.2)


def test_play_a_run_to_where_it_turns_bold(visit):
    plan = prudent.solve(prudent.domains.betting_game(), 0.2)
    here = visit("?model=betting-game&alpha=0.2&run=1").ready().drawn("story")
    here.page.wait_for_selector("#now h3")
    assert "Step 1, bets made 0, money 5" in here.page.inner_text("#now")
    assert here.page.inner_text("#now .chosen") == str(plan.policy((0, 5)))
    steps, turned = 0, None
    while here.page.is_enabled("#step"):
        text = here.page.inner_text("#now")
        assert "remaining budget" in text and "Cost so far" in text
        row, box = (here.page.locator(f"#now {name}").bounding_box() for name in (".played", ".scroll"))
        assert box["y"] - 1 <= row["y"] < box["y"] + box["height"]  # what is played is in sight
        if "From this step on the tail is safe" in text:
            turned = steps
            assert here.page.locator("#story .legend text").all_text_contents()[2:] == ["budget", "the tail is safe"]
            assert here.page.locator("#story .annotation").count() == 0  # no label that a line could cross
            scrolls = here.page.evaluate(
                """() => [...document.querySelectorAll("main *")]
                    .filter((place) => /auto|scroll/.test(getComputedStyle(place).overflowY))
                    .map((place) => [place.tabIndex, Boolean(place.ariaLabel)])"""
            )
            assert len(scrolls) >= 4 and all(each == [0, True] for each in scrolls)
        here.page.click("#step")
        steps += 1
    assert steps == here.page.locator("#log li").count() == 11
    assert turned is not None and "From here the tail is safe" in here.page.locator("#log li").nth(turned).inner_text()
    assert "The run ends in end." in here.page.inner_text("#now")
    here.page.click("#again")
    assert here.page.locator("#log li").count() == 0
    here.page.click("#another")
    here.wait("document.getElementById('run').value === '2'")
    assert "run=2" in here.page.url


def test_a_run_of_a_plan_that_looks_at_the_mean_alone(visit):
    here = visit("?model=betting-game&alpha=1&run=1").ready(alpha=1).drawn("story")
    here.page.wait_for_selector("#now h3")
    text = here.page.inner_text("#now")
    assert "Cost so far" in text and "this plan minimises the expected cost alone" in text
    assert "remaining budget" not in text
    assert "this plan uses no budget" in here.page.inner_text("#left-value")
    while here.page.is_enabled("#step"):
        here.page.click("#step")
    assert "This plan uses no budget." in here.page.inner_text("#now")


def test_downloads_of_plan_and_figure(visit, tmp_path):
    here = visit().ready().drawn("curve")
    for click, name, begins in (
        ("text=Plan (.safetensors)", "plan.safetensors", b""),
        ("text=Decisions (.csv)", "decisions.csv", b'"state",'),
        ('[data-figure="curve"] >> text=PNG', "prudent-curve.png", b"\x89PNG"),
        ('[data-figure="curve"] >> text=SVG', "prudent-curve.svg", b"<svg"),
    ):
        with here.page.expect_download() as coming:
            here.page.click(click)
        assert coming.value.suggested_filename == name
        coming.value.save_as(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)
    loaded = prudent.load_plan(tmp_path / "plan.safetensors", prudent.domains.betting_game())
    assert loaded.cvar == printed("solve", "betting-game", "--alpha", 0.2)["cvar"]


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"])
def test_phone_width(visit, scheme):
    here = visit(viewport={"width": 375, "height": 740}, color_scheme=scheme, has_touch=True).ready().drawn("curve")
    here.drawn("frontier").drawn("map").drawn("story")
    assert here.page.evaluate("document.documentElement.scrollWidth") <= 375
    wide = here.page.evaluate(
        """() => [...document.querySelectorAll("main *, header *, .dial *")].filter((place) => {
            const box = place.getBoundingClientRect();
            return box.width > 1 && box.right > 376 && !place.closest(".scroll, svg, .js-plotly-plot");
        }).map((place) => place.outerHTML.slice(0, 80))"""
    )
    assert wide == []
    box = here.page.locator("#alpha").bounding_box()
    assert box["width"] > 300 and box["height"] >= 30
    back = here.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(16, 22, 28)") == (scheme == "dark")


def test_a_slider_beside_alpha_sets_the_confidence(visit, tmp_path):
    row = {"state": "s", "action": "a", "next_state": "g"}
    log = [{**row, "cost": cost, "n": n} for cost, n in ((2, 40), (5, 6), (9, 3))]
    path = tmp_path / "learned.json"
    prudent.save(prudent.from_episodes(log, count="n", initial="s").model, path)
    here = visit("?model=figure-2").ready()
    assert here.page.locator("#confidence-box").is_hidden()
    here.page.set_input_files("#file", path)
    here.page.wait_for_selector("#confidence-box", state="visible")
    here.ready()
    before = here.number("cvar").text_content()
    slider = here.page.locator("#confidence")
    slider.focus()
    for _ in range(6):
        slider.press("ArrowRight")
    here.wait("document.querySelector('#confidence-value').textContent.includes('95% confidence')")
    theirs = printed("solve", path, "--alpha", 0.2, "--uncertainty", 0.95)
    here.wait(f"document.querySelector('#plan-exact dd[data-key=cvar]').dataset.value === '{theirs['cvar']!r}'")
    assert here.number("cvar").text_content() != before
    assert here.page.locator("#plan-exact dt").first.text_content() == "worst-case CVaR"
    assert "in the model itself: CVaR" in here.page.locator("#plan-exact .against").text_content()
    assert "every model that fits the counts" in here.page.locator("#headline").text_content()
    assert "--uncertainty 0.95" in here.page.locator("#command").text_content()
    assert "uncertainty=0.95" in here.page.url
    again = visit(here.page.url.removeprefix(here.address + "/")).ready()
    again.page.wait_for_selector("#confidence-box", state="visible")
    assert again.page.locator("#confidence-value").text_content().endswith("95% confidence")
    assert again.number("cvar").get_attribute("data-value") == repr(theirs["cvar"])


WAITS = """() => [...document.querySelectorAll(".stale, .waiting, .headline, dd")]
    .filter((place) => place.checkVisibility())
    .filter((place) => place.classList.contains("stale") || place.textContent.includes("…"))
    .map((place) => place.id || place.className || place.tagName)"""


def typed(here, alpha):
    here.page.fill("#alpha-number", str(alpha))
    here.page.keyboard.press("Tab")


def test_the_cards_share_their_axes(visit):
    here = visit("?model=betting-game&alpha=0.2").ready("cvar-ev").ready("cvar-wc").ready("expected")
    here.wait("document.querySelectorAll('.plan .js-plotly-plot').length === 4")
    here.wait(
        "new Set([...document.querySelectorAll('.plan .chart')].map((chart) =>"
        " JSON.stringify([chart.layout.xaxis.range, chart.layout.yaxis.range, chart.data[0].width[0]]))).size === 1"
    )
    highest, top = here.page.evaluate(
        "[Math.max(...[...document.querySelectorAll('.plan .chart')].flatMap((chart) => chart.data[0].y)),"
        " document.querySelector('.plan .chart').layout.yaxis.range[1]]"
    )
    assert highest < top
    for box in (chart.bounding_box() for chart in here.page.locator(".plan .chart").all()):
        assert box["width"] >= 300 and box["height"] >= 240


def test_the_cards_share_their_axes_after_another_model_and_back(visit):
    """The first of the other plans brings the axes that all plans had before."""
    here = visit("?model=figure-2&alpha=0.2").ready().ready("cvar-ev").ready("cvar-wc").ready("expected")
    here.wait("document.querySelectorAll('.plan .js-plotly-plot').length === 4")
    held = []
    here.page.route(re.compile("api/solve.*method=(expected|cvar)"), lambda route: held.append(route))
    here.page.select_option("#model", "betting-game")
    here.page.select_option("#model", "figure-2")
    here.ready().wait("document.querySelector('#plan-exact .js-plotly-plot')")
    of = "document.querySelector('#plan-{} .chart').layout?.xaxis.range.join()"
    alone = here.page.evaluate(of.format("exact"))
    while not (
        mine := [route for route in held if "figure-2" in route.request.url and "expected" in route.request.url]
    ):
        here.page.wait_for_timeout(20)
    mine[-1].continue_()
    here.ready("expected").wait("document.querySelector('#plan-expected .js-plotly-plot')")
    assert here.page.evaluate(of.format("expected")) == here.page.evaluate(of.format("exact")) != alone


def test_bars_are_joined_to_a_common_width(visit):
    bars = {"x": [2, 3, 5, 6], "p": [0.1, 0.2, 0.3, 0.4], "bar": [-3, -2, 0, 1]}
    bars |= {"width": 1, "step": 1, "end": 5, "missing": 0}
    here = visit().ready()
    wide, same = here.page.evaluate(
        """async (bars) => {
            const { joined } = await import("/static/charts.js");
            return [joined(bars, 2), joined(bars, 1.5)];
        }""",
        bars,
    )
    assert same == bars
    assert wide["x"] == [2.5, 4.5, 6.5]  # each ends at 5 plus a multiple of 2
    assert wide["p"] == pytest.approx([0.3, 0.3, 0.4]) and wide["width"] == 2


def test_no_text_of_a_picture_is_cut_off(visit):
    for width in (1300, 390):
        here = visit("?model=figure-2&alpha=0.1", viewport={"width": width, "height": 900}).ready(alpha=0.1)
        here.drawn("curve").drawn("frontier").drawn("story").ready("cvar-ev", 0.1).ready("cvar-wc", 0.1)
        here.wait("document.querySelectorAll('.plan .js-plotly-plot').length === 4")
        cut = here.page.evaluate(
            """() => [...document.querySelectorAll(".js-plotly-plot text")].filter((text) => {
                const box = text.getBoundingClientRect(), card = text.closest(".card").getBoundingClientRect();
                return box.left < card.left || box.right > card.right;
            }).map((text) => text.textContent)"""
        )
        assert cut == []
        assert here.page.locator("#curve .xtick", has_text="100%").count() == 1
        hidden = here.page.evaluate(
            """() => [...document.querySelectorAll(".plan *, #name, #about")].filter((place) =>
                place.scrollWidth > place.clientWidth + 1 && getComputedStyle(place).overflowX === "hidden")
                .map((place) => place.className)"""
        )
        assert [name for name in hidden if "plot" not in str(name)] == []


@pytest.fixture
def machine(tmp_path):
    """A file whose states are pairs, and whose actions are words."""

    def options(state):
        week, wear = state
        worn = [(0.5, (week + 1, wear), wear), (0.5, (week + 1, min(wear + 1, 2)), 2 * wear)]
        return {"run": worn, "repair": [(1, (week + 1, 0), 3)]} if week < 3 else {}

    path = tmp_path / "machine.json"
    prudent.save(prudent.build((0, 0), options), path)
    return path


def test_an_upload_has_its_name_a_map_and_a_way_back(visit, machine):
    here = visit("?model=figure-2&alpha=0.2").ready()
    titles = [about.title for about in prudent.domains.registry.DOMAINS.values()]
    assert here.page.locator("#model option").all_inner_texts() == titles
    assert here.page.inner_text("#name") == prudent.domains.registry.DOMAINS["figure-2"].title
    here.page.set_input_files("#file", machine)
    here.wait("document.getElementById('about').dataset.model?.startsWith('upload-')")
    assert here.page.inner_text("#name") == "machine" and here.page.title() == "machine: Prudent"
    here.drawn("map")
    assert here.page.evaluate("document.getElementById('map').data.map(({ name }) => name)")[1:] == ["run", "repair"]
    number = here.page.input_value("#model")
    here.page.select_option("#model", "figure-2")
    here.wait("document.getElementById('about').dataset.model === 'figure-2'")
    here.page.select_option("#model", number)
    here.wait(f"document.getElementById('about').dataset.model === '{number}'")
    assert here.page.inner_text("#name") == "machine"
    bare = visit(f"?model={number}&alpha=0.2").ready()
    bare.wait("document.getElementById('name').textContent === 'machine'")


def test_an_alpha_that_is_none_changes_nothing(visit):
    here = visit("?model=figure-2&alpha=0.2").ready("cvar-ev").ready("cvar-wc").ready("expected").ready()
    here.drawn("curve").drawn("frontier").drawn("story")
    here.wait(f"({WAITS})().length === 0")
    before, asked = here.page.inner_text("main"), len(here.requests)
    for alpha in ("-1", "7", "0"):
        typed(here, alpha)
        message = f"alpha is {alpha}; it must be the worst fraction of runs, above 0 and at most 1"
        assert here.page.inner_text("main") == f"{message}\n\n{before}"
        assert here.page.input_value("#alpha-number") == "0.2" and "alpha=0.2" in here.page.url
        assert here.page.inner_text("#percent") == "20%" and here.page.evaluate(WAITS) == []
    assert len(here.requests) == asked
    typed(here, 0.3)
    for method in ("exact", "expected", "cvar-wc", "cvar-ev"):
        here.ready(method, 0.3)
    assert here.page.is_hidden("#problem")


@pytest.mark.parametrize(
    ("status", "message"), [(504, "too long"), pytest.param(400, "no memory", marks=pytest.mark.slow)]
)
def test_a_model_whose_first_plan_does_not_come_shows_the_rest(visit, status, message):
    """Whether it takes too long or is refused; and what comes later is shown."""
    here = visit("?model=figure-2&alpha=0.2").ready()
    here.expected, told = (str(status),), {"error": message, "problems": [message]}
    exact = re.compile("api/solve.*method=exact")
    here.page.route(exact, lambda route: route.fulfill(status=status, json=told))
    here.page.select_option("#model", "betting-game")
    for method in ("expected", "cvar-wc", "cvar-ev"):
        here.ready(method)
    here.drawn("curve").drawn("frontier")
    here.wait("document.getElementById('about').dataset.model === 'betting-game'")
    here.wait(f"({WAITS})().length === 0")
    assert here.page.inner_text("#problem") == here.page.inner_text("#plan-exact .chart") == message
    assert here.page.inner_text("#map") == here.page.inner_text("#story") == message
    assert here.page.inner_text("#headline") == "There is no plan of minimal CVaR to show."
    assert here.page.locator("main > :visible").count() >= 7
    here.page.unroute(exact)
    typed(here, 0.3)
    here.ready(alpha=0.3).drawn("map").drawn("story")
    check_numbers(here, 0.3)


def test_a_model_that_opens_with_a_refused_alpha_has_its_curve_later(visit):
    here = visit("?model=figure-2&alpha=7")
    here.expected = ("400",)
    here.page.wait_for_selector("#problem:not([hidden])")
    typed(here, 0.2)
    here.ready().drawn("curve")
    here.wait("document.getElementById('about').dataset.model === 'figure-2'")


def test_a_newer_alpha_overtakes_the_first_and_nothing_waits(visit):
    here = visit("?model=figure-2&alpha=0.2").ready()
    held = []
    here.page.route(re.compile("api/solve.*alpha=0.2.*method=exact"), lambda route: held.append(route))
    here.page.select_option("#model", "betting-game")
    here.wait("document.getElementById('headline').textContent === 'Solving…'")
    typed(here, 0.3)
    for method in ("exact", "expected", "cvar-wc", "cvar-ev"):
        here.ready(method, 0.3)
    here.drawn("curve").drawn("frontier").drawn("map").drawn("story")
    here.wait(f"({WAITS})().length === 0")


def test_what_a_stopped_solve_had_stays_and_the_rest_does_not_wait_for_more(visit, get):
    best = get("solve", "figure-2", alpha=0.2).json() | {"refining": True}
    here = visit("?model=betting-game&alpha=0.2").ready()
    here.expected, held = ("504",), []
    here.page.route(re.compile("api/solve.*model=figure-2.*method=exact"), lambda route: held.append(route))
    here.page.route(re.compile("api/so-far"), lambda route: route.fulfill(json=best))
    here.page.select_option("#model", "figure-2")
    here.page.wait_for_selector("#plan-exact .badge.refining")
    held[-1].fulfill(status=504, json={"error": "too long"})
    for method in ("expected", "cvar-wc", "cvar-ev"):
        here.ready(method)
    here.drawn("curve").drawn("frontier")
    here.wait("document.getElementById('map').textContent === 'too long'")
    here.wait("document.getElementById('story').textContent === 'too long'")
    here.wait(f"({WAITS})().length === 0")


def test_busy_workers_are_not_asked_for_ever(visit):
    here = visit("?model=figure-2&alpha=0.2").ready().drawn("frontier")
    here.expected, asked = ("503",), []

    def busy(route):
        asked.append(route)
        route.fulfill(status=503, json={"error": "all busy"}, headers={"Retry-After": "0"})

    here.page.route(re.compile("api/frontier"), busy)
    typed(here, 0.3)
    here.wait("document.getElementById('frontier').textContent === 'all busy'")
    assert len(asked) == 60


def test_an_upload_is_overtaken_by_another_choice(visit, machine):
    here = visit("?model=figure-2&alpha=0.2").ready()
    held = []
    here.page.route(re.compile("api/models"), lambda route: held.append(route))
    here.page.set_input_files("#file", machine)
    here.wait("document.getElementById('upload').textContent === 'Uploading…'")
    here.page.select_option("#model", "betting-game")
    here.wait("document.getElementById('about').dataset.model === 'betting-game'")
    assert here.page.inner_text("#upload") == "Upload a model…"
    assert held and here.page.input_value("#model") == "betting-game"


def test_the_curve_is_clicked_anywhere_after_another_model(visit):
    here = visit("?model=betting-game&alpha=0.2").ready().drawn("curve")
    here.page.select_option("#model", "figure-2")
    here.wait("document.getElementById('about').dataset.model === 'figure-2'")
    here.drawn("curve").wait("Math.max(...document.getElementById('curve').data[0].y) < 50")  # the new model's
    here.page.locator("#curve").scroll_into_view_if_needed()
    area = here.page.locator("#curve .nsewdrag").bounding_box()
    low, high = here.page.evaluate("document.getElementById('curve').layout.xaxis.range")
    here.page.mouse.click(area["x"] + 0.75 * area["width"], area["y"] + 0.3 * area["height"])  # no line is near
    here.wait("document.getElementById('alpha-number').value !== '0.2'")
    alpha = here.page.input_value("#alpha-number")
    assert float(alpha) == pytest.approx(10 ** (low + 0.75 * (high - low)), rel=0.02)
    here.ready(alpha=alpha)
    area = here.page.locator("#curve .nsewdrag").bounding_box()
    here.page.mouse.click(area["x"] - 30, area["y"] + 0.6 * area["height"])  # beside the axes
    assert here.page.input_value("#alpha-number") == alpha


def test_the_figure_of_budgets_in_the_documentation_follows_its_slider(browser):
    page, script = browser.new_page(), Path(__file__).parents[2] / "docs" / "_static" / "budgets.js"
    told = {"alpha": 0.5, "budget": [0, 1, 2, 3], "excess": [4, 1, 0, 0], "action": ["go", "go", "stay", "go"]}
    page.set_content(f"<div class='budgets' data-content='{json.dumps(told)}'></div>")
    page.add_script_tag(path=script)
    assert page.locator("svg rect[class]").count() == 3  # one for each change of the action
    assert page.locator("svg text.on").all_text_contents() == ["go", "stay", "go"]
    for place, text in (
        (1, "Budget 1: take the go. Expected excess 1, penalty 2, together 3."),
        (2, "the optimal CVaR"),
    ):
        page.locator("input").fill(str(place))
        assert text in page.inner_text("[aria-live]")
    page.close()
