"""What the page is told: the same numbers, texts and messages as by command."""

import csv
import io
import json

import numpy as np
import pytest
from click.testing import CliRunner

import prudent
from plans import same_policy
from prudent.apps.cli.main import main
from prudent.domains.registry import DOMAINS
from prudent.methods.registry import METHODS

for needs in ("httpx", "plotly", "starlette", "uvicorn"):
    pytest.importorskip(needs)


def command(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def printed(*arguments):
    answer = json.loads(command(*arguments, "--json").stdout)
    answer.pop("seconds")
    return answer


MODELS = {
    "betting-game": ["stages=6"],
    "inventory-control": ["stages=4", "capacity=8", "demand=4"],
    "deep-sea-treasure": ["horizon=8"],
    "figure-2": [],
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS)
def test_numbers_are_those_of_the_command_to_the_last_digit(get, model, method):
    for alpha in (0.005, 0.07, 0.3, 0.978, 1):
        settings = [part for item in MODELS[model] for part in ("--set", item)]
        theirs = printed("solve", model, *settings, "--alpha", alpha, "--method", method)
        ours = get("solve", model, set=MODELS[model], alpha=alpha, method=method).json()
        ours["plan"].pop("seconds")
        assert ours["plan"] == theirs
        shown = command("solve", model, *settings, "--alpha", alpha, "--method", method).stdout
        for name in ("cvar", "var", "expected"):
            assert ours["shown"][name] in shown


def test_numbers_of_rounded_costs_are_those_of_the_command(get):
    theirs = printed("solve", "autonomous-navigation", "--alpha", 0.2)
    ours = get("solve", "autonomous-navigation", alpha=0.2).json()
    ours["plan"].pop("seconds")
    assert ours["plan"] == theirs
    assert theirs["notes"]
    sign, shown = ours["shown"]["cvar"].split("\u00a0")
    assert sign == "≥" and theirs["cvar"] - 1e-3 < float(shown) <= theirs["cvar"]  # rounded down
    assert 3 <= len(shown.partition(".")[2]) < 6  # what the bounds support


def test_the_gap_asked_for_goes_into_every_plan(get):
    model, settings = prudent.domains.autonomous_navigation(seed=3), {"set": "seed=3", "alpha": 0.05}
    steps = set()
    for gap in (None, 1e-2, 1e-4):
        asked = {} if gap is None else {"relative_gap": gap}
        options = [] if gap is None else ["--relative-gap", gap]
        theirs = printed("solve", "autonomous-navigation", "--set", "seed=3", "--alpha", 0.05, *options)
        ours = get("solve", "autonomous-navigation", **settings, **asked).json()
        ours["plan"].pop("seconds")
        assert ours["plan"] == theirs
        assert (ours["rounded"], ours["refines"], ours["refining"]) == (True, True, False)
        steps.add(theirs["step"])
        plan = prudent.solve(model, 0.05, **asked)
        shown = get("policy", "autonomous-navigation", **settings, **asked).json()
        assert shown["budget"]["start"] == plan.policy.budget
        run = get("play", "autonomous-navigation", run=1, **settings, **asked).json()
        assert run["budget"] == plan.policy.budget
        data = get("data.json", "autonomous-navigation", **settings, **asked).json()
        assert data["step"] == plan.step
        assert data["distribution"]["values"] == prudent.evaluate(model, plan.policy).values.tolist()
        mean = get("solve", "autonomous-navigation", method="expected", **settings, **asked).json()["plan"]
        assert mean["status"] == "approximate"  # it is not refined, whatever the gap
    assert len(steps) == 3


def test_a_gap_makes_no_difference_where_the_optimum_takes_little(get):
    for asked in ({}, {"relative_gap": 0.01}, {"relative_gap": 0}):
        answer = get("solve", "betting-game", alpha=0.2, **asked).json()
        assert (answer["plan"]["status"], answer["refines"], answer["rounded"]) == ("optimal", False, False)


def test_what_would_take_long_at_fine_steps_is_simulated_or_refused(monkeypatch):
    from prudent.apps.web import tasks
    from prudent.apps.web.worker import Session

    session, values = Session(prudent.domains.betting_game(stages=4), {}, 10**9), {"alpha": "0.2"}
    exact = json.loads(tasks.TASKS["solve"].answer(session, values))["bars"]
    monkeypatch.setattr(tasks, "LONG", 100)
    rough = json.loads(tasks.TASKS["solve"].answer(session, values))["bars"]
    assert (exact["simulated"], rough["simulated"]) == (False, True)
    assert np.interp(exact["x"], rough["x"], rough["p"]) == pytest.approx(exact["p"], abs=0.02)
    with pytest.raises(prudent.PrudentError, match="too long for the page at steps of 1; choose a larger gap"):
        tasks.TASKS["play"].answer(session, values)


def test_bars_are_fine_where_runs_are_and_rare_ends_do_not_matter():
    from prudent.apps.web.tasks import TASKS
    from prudent.apps.web.worker import Session

    usual = [(0.0999, "g", cost) for cost in range(100, 200, 10)]
    model = prudent.build("s", {"s": {"go": [*usual, (0.0005, "g", 0), (0.0005, "g", 5000)]}})
    bars = json.loads(TASKS["solve"].answer(Session(model, {}, 10**9), {"alpha": "0.5"}))["bars"]
    assert len(bars["x"]) == 12 and bars["width"] <= 10


def test_a_sweep_for_every_alpha_gives_the_same_plans_at_once():
    from prudent.apps.web.worker import Asked, Session

    model = prudent.domains.betting_game()
    session = Session(model, {}, 10**9)
    session.plan(Asked(0.5))
    for alpha in np.geomspace(0.005, 1, 25).tolist():
        session.seconds = 100.0  # as if a solve took long
        quick, own = session.plan(Asked(alpha), sure=False), prudent.solve(model, alpha)
        assert not session.is_sure(quick)
        for name in ("cvar", "var", "expected", "status", "lower", "worst_case"):
            assert getattr(quick, name) == getattr(own, name)
        assert quick.upper == pytest.approx(own.upper, rel=1e-13)
        assert same_policy(quick.policy, own.policy)
        sure = session.plan(Asked(alpha))
        assert session.is_sure(sure) and sure.upper == own.upper
        assert session.plan(Asked(alpha), sure=False) is sure


def test_below_the_slider_alpha_is_solved_for_itself(get):
    theirs = printed("solve", "betting-game", "--alpha", 0.0001)
    ours = get("solve", alpha=0.0001).json()["plan"]
    ours.pop("seconds")
    assert ours == theirs


@pytest.mark.parametrize("model", MODELS)
def test_bars_are_the_distribution_and_none_crosses_var(get, model):
    for alpha in (0.02, 0.2, 0.6):
        answer = get("solve", model, alpha=alpha).json()
        bars, var = answer["bars"], answer["plan"]["var"]
        made = getattr(prudent.domains, model.replace("-", "_"))()
        exactly = prudent.evaluate(made, prudent.solve(made, alpha).policy)
        assert sum(bars["p"]) == pytest.approx(1, abs=1e-9)
        beyond = sum(p for x, p in zip(bars["x"], bars["p"], strict=True) if x > var)
        assert beyond == pytest.approx(exactly.exceeds(var), abs=1e-12)
        mean = np.dot(bars["x"], bars["p"])
        assert abs(mean - exactly.mean) <= bars["width"] / 2 + 1e-9
        assert np.log2(bars["width"] / bars["step"]) == round(np.log2(bars["width"] / bars["step"]))
        assert bars["x"] == pytest.approx(
            bars["end"] + np.array(bars["bar"]) * bars["width"] - (bars["width"] - bars["step"]) / 2
        )


def test_curve_and_frontier_are_those_of_the_command(get):
    theirs = printed("curve", "betting-game", "--alpha-min", 0.005)
    ours = get("curve").json()
    assert ours["points"] == theirs["points"] and not ours["sampled"]
    theirs = printed("frontier", "betting-game", "--alpha", 0.2, "--tolerance", 0.01)
    assert get("frontier", alpha=0.2).json()["points"] == theirs["points"]


def test_heat_map_shows_what_the_policy_plays(get):
    plan = prudent.solve(prudent.domains.betting_game(), 0.2)
    content = get("policy", alpha=0.2).json()
    assert content["budget"]["left"] == plan.policy.budget
    states = [plan.model.state(i) for i in range(plan.model.n_states)]
    known = {state for state in states if state != "end" and state[0] < 10}
    for stage, money in known:
        assert content["cells"][money][stage] == plan.policy((stage, money), 0)
    filled = sum(cell is not None for row in content["cells"] for cell in row)
    assert filled == len(known)


def test_heat_map_of_another_budget(get):
    plan = prudent.solve(prudent.domains.inventory_control(), 0.1)
    content = get("policy", "inventory-control", alpha=0.1, left=150, layer=7).json()
    left, layer = content["budget"]["left"], content["layer"]["value"]
    assert layer == 7 and abs(left - 150) <= 3
    cells = [
        (stage, stock, cell)
        for stock, row in enumerate(content["cells"])
        for stage, cell in enumerate(row)
        if cell is not None
    ]
    assert len(cells) > 50
    for stage, stock, cell in cells:
        assert cell == plan.policy((stage, stock, layer), plan.policy.budget - left)


def test_arrows_of_the_treasure_map(get):
    plan = prudent.solve(prudent.domains.deep_sea_treasure(), 0.1)
    content = get("policy", "deep-sea-treasure", alpha=0.1, left=plan.policy.budget - 15).json()
    assert content["moves"] == 3 and len(content["arrows"]) > 5
    for arrow in content["arrows"]:
        assert arrow["action"] == plan.policy((arrow["x"], arrow["y"], 3), 15)


def test_roads_are_as_wide_as_runs_take_them(get):
    content = get("policy", "autonomous-navigation", alpha=0.2, set="seed=3").json()
    plan = prudent.solve(prudent.domains.autonomous_navigation(seed=3), 0.2)
    visits, places = plan.visits(), {place["name"]: place for place in content["places"]}
    for route in content["routes"]:  # an action is where it leads
        assert route["share"] == pytest.approx(visits.of(route["from"], route["to"]), abs=1e-9)
    left_out = visits.played.sum() - sum(route["share"] for route in content["routes"])
    assert 0 <= left_out < 0.01
    met = {place["name"] for place in content["places"] if place["share"]}
    assert met == {"A17"} | {str(s) for s in plan.model.state_names if s != "A17" and visits.of(s) >= 0.001}
    assert places["A00"]["share"] == places["A17"]["share"] == pytest.approx(1)
    assert (places["A00"]["x"], places["A00"]["y"]) == prudent.domains.navigation.synthetic_roads(3)[1]["A00"]
    spent = plan.policy.whole - content["budget"]["left"]
    assert content["next"] and all(turn["to"] == plan.policy(turn["from"], spent) for turn in content["next"])


def test_a_network_without_places_is_laid_out(get, running, tmp_path):
    path = tmp_path / "autonomous-navigation.json"
    model = prudent.domains.autonomous_navigation(seed=3)
    prudent.save(model, path)
    sent = running.client.post("/api/models?name=autonomous-navigation.json", content=path.read_bytes()).json()
    content = get("policy", sent["model"], alpha=0.2).json()
    assert {place["name"] for place in content["places"]} == set(model.state_names)
    assert len({(place["x"], place["y"]) for place in content["places"]}) == model.n_states
    assert len(content["roads"]) == model.n_actions  # each leads to one junction, and no two to the same


def test_a_plan_that_looks_at_no_budget_is_shown_everywhere(get):
    content = get("policy", "inventory-control", alpha=1).json()
    plan = prudent.solve(prudent.domains.inventory_control(), 1)
    states = [s for s in plan.model.state_names if s != "end" and s[2] == content["layer"]["value"]]
    assert content["layer"]["name"] == "previous demand"
    for stage, stock, demand in states:
        least = plan.bands((stage, stock, demand))[0].at_least
        assert content["cells"][stock][stage] == plan.policy((stage, stock, demand), least)
    assert sum(cell is not None for row in content["cells"] for cell in row) == len(states)


def test_a_run_follows_the_plan_and_its_luck_adds_up(get):
    model = prudent.domains.betting_game()
    plan = prudent.solve(model, 0.2)
    bold = []
    for seed in range(12):
        run = get("play", alpha=0.2, run=seed).json()
        spent, state = 0.0, (0, 5)
        for i, step in enumerate(run["steps"]):
            assert step["state"] == str(state) and step["spent"] == spent
            assert step["action"] == str(plan.policy(state, spent))
            safe = plan.explain(state, spent).safe
            assert step["safe"] == safe
            assert safe == (run["safe_from"] is not None and i >= run["safe_from"])
            happened = next(outcome for outcome in step["outcomes"] if outcome["happened"])
            spent += happened["cost"]
            state = next(s for s in map(model.state, range(model.n_states)) if str(s) == happened["to"])
        assert run["done"] and state == "end" and run["total"] == spent
        assert run["bad"] == (spent > plan.var)
        assert sum(step["luck"] for step in run["steps"]) == pytest.approx(plan.expected - spent, abs=1e-9)
        assert get("play", alpha=0.2, run=seed).json() == run
        bold.append(run["safe_from"])
    assert any(step is not None for step in bold)


def test_a_plan_that_looks_at_the_mean_alone_has_no_budget(get):
    run = get("play", "figure-2", alpha=1, run=1).json()
    assert (run["budget"], run["steps"][0]["budget"]) == (None, None)
    assert run["steps"][0]["summary"] == "this plan minimises the expected cost alone"
    assert get("policy", "figure-2", alpha=1).json()["budget"]["start"] is None


def test_outcomes_come_as_often_as_they_should(get):
    lucky = [
        next(
            o["to"]
            for o in get("play", "figure-2", alpha=0.1, run=seed).json()["steps"][0]["outcomes"]
            if o["happened"]
        )
        for seed in range(300)
    ]
    assert abs(lucky.count("s2") / 300 - 0.1) < 4 * (0.09 / 300) ** 0.5


def test_downloads(get, tmp_path):
    model = prudent.domains.betting_game()
    plan = prudent.solve(model, 0.2)
    answer = get("plan.safetensors", alpha=0.2)
    assert answer.headers["content-disposition"] == 'attachment; filename="plan.safetensors"'
    (tmp_path / "plan.safetensors").write_bytes(answer.content)
    loaded = prudent.load_plan(tmp_path / "plan.safetensors", model)
    assert (loaded.cvar, loaded.expected) == (plan.cvar, plan.expected)
    assert get("decisions.csv", alpha=0.2).text == plan.decisions().to_csv()
    rows = list(csv.reader(io.StringIO(get("distribution.csv", alpha=0.2).text)))
    result = prudent.evaluate(model, plan.policy)
    assert rows[0] == ["value", "probability"]
    assert [float(value) for value, _ in rows[1:]] == result.values.tolist()
    data = get("data.json", alpha=0.2).json()
    assert data["cvar"] == plan.cvar and data["distribution"]["values"] == result.values.tolist()


@pytest.mark.parametrize(
    ("model", "settings", "alpha"),
    [
        ("betting-game", ["stages=x"], 0.2),
        ("betting-game", ["stages=0"], 0.2),
        ("betting-game", ["rounds=3"], 0.2),
        ("betting-game", ["stages=3", "stages=4"], 0.2),
        ("beting-game", [], 0.2),
        ("betting-game", [], 0),
        ("betting-game", [], 1.5),
        ("autonomous-navigation", ["start=Q99"], 0.2),
    ],
)
def test_bad_input_gets_the_message_of_the_command(get, model, settings, alpha):
    options = [part for item in settings for part in ("--set", item)]
    theirs = command("solve", model, *options, "--alpha", alpha)
    ours = get("solve", model, set=settings, alpha=alpha)
    assert ours.status_code == 400
    assert theirs.exit_code == ours.json()["exit"] == 2
    assert theirs.stderr == f"prudent: {ours.json()['error']}\n"


@pytest.mark.parametrize(
    ("task", "values", "named"),
    [
        ("solve", {"alpha": "a lot"}, "alpha is 'a lot'"),
        ("solve", {}, "alpha is ''"),
        ("solve", {"alpha": "nan"}, "alpha is nan"),
        ("solve", {"alpha": 0.2, "method": "magic"}, "method is 'magic'; it must be one of"),
        ("solve", {"alpha": 0.2, "relative_gap": "-1"}, "relative_gap is -1"),
        ("policy", {"alpha": 0.2, "relative_gap": "small"}, "relative_gap is 'small'"),
        ("policy", {"alpha": 0.2, "left": "inf"}, "left is 'inf'"),
        ("play", {"alpha": 0.2, "run": "-1"}, "run is '-1'"),
        ("decisions.csv", {"alpha": 0.2, "method": "cvar-wc"}, "use method='exact'"),
    ],
)
def test_what_only_the_page_asks_is_refused_by_name(get, task, values, named):
    answer = get(task, **values)
    assert answer.status_code == 400 and named in answer.json()["error"]


BROKEN = {
    "nothing": b"",
    "no JSON": b'{"format"',
    "no goal": b'{"format": "prudent-ssp", "version": 1, "initial": "a", "goals": [], "transitions": []}',
    "two problems": json.dumps(
        {
            "format": "prudent-ssp",
            "version": 1,
            "initial": "a",
            "goals": ["g"],
            "transitions": [
                {"state": "a", "action": "x", "outcomes": [{"p": 0.5, "to": "g", "cost": 1}]},
                {"state": "a", "action": "y", "outcomes": [{"p": 1, "to": "nowhere", "cost": 1}]},
            ],
        }
    ).encode(),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_upload_gets_the_message_of_the_command(running, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.json").write_bytes(BROKEN[kind])
    theirs = command("solve", "broken.json", "--alpha", 0.2)
    ours = running.client.post("/api/models?name=broken.json", content=BROKEN[kind])
    assert ours.status_code == 400 and theirs.exit_code == 2
    assert theirs.stderr == f"prudent: {ours.json()['error']}\n"


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".umb"])
def test_an_upload_is_solved_like_the_file(running, get, tmp_path, suffix):
    path = tmp_path / f"mine{suffix}"
    prudent.save(prudent.domains.betting_game(stages=4), path)
    sent = running.client.post(f"/api/models?name=mine{suffix}", content=path.read_bytes()).json()
    assert sent["check"]["ok"] and sent["name"] == path.name
    theirs = printed("solve", path, "--alpha", 0.2)
    ours = get("solve", sent["model"], alpha=0.2).json()["plan"]
    ours.pop("seconds")
    assert ours == theirs
    plan = prudent.solve(prudent.load(path), 0.2)
    found = get("policy", sent["model"], alpha=0.2, left=plan.policy.budget).json()  # a map of pairs, as of the domain
    column, row = found["columns"].index(0), found["rows"].index(5)
    assert found["kind"] == "heat" and str(found["cells"][row][column]) == plan.policy("(0, 5)", 0)
    assert get("play", sent["model"], alpha=0.2).json()["done"]
    answer = get("solve", sent["model"], alpha=0.2, set="stages=3")
    assert answer.status_code == 400 and "only domains have parameters" in answer.json()["error"]


def test_a_chain_of_more_steps_than_can_be_counted_is_refused_like_any_other(running, get, tmp_path, capfd):
    """Two chains of 60 states, each step forward with little chance, else back to the start: 1e180 steps."""
    path = tmp_path / "endless.json"
    table = {"s": {way: [(1, f"{way}0", 1)] for way in "ab"}, "g": {}}
    for way in "ab":
        for i in range(60):
            table[f"{way}{i}"] = {"go": [(0.001, f"{way}{i + 1}" if i < 59 else "g", 1), (0.999, "s", 1)]}
    prudent.save(prudent.build("s", table), path)
    sent = running.client.post("/api/models?name=endless.json", content=path.read_bytes())
    assert sent.status_code == 200 and sent.json()["check"]["ok"]
    for task in ("solve", "frontier", "policy", "play"):
        answer = get(task, sent.json()["model"], alpha=0.2)
        assert answer.status_code == 400 and "memory" in answer.json()["error"]
    assert "Traceback" not in capfd.readouterr().err


def test_everything_the_page_needs_is_there(running, get):
    page = running.client.get("/").text
    for name in ("main.js", "style.css", "plotly.js"):
        assert f"static/{name}" in page
        assert running.client.get(f"/static/{name}").status_code == 200
    tag = running.client.get("/static/plotly.js").headers["etag"]
    assert running.client.get("/static/plotly.js", headers={"If-None-Match": tag}).status_code == 304
    names = {"domains", "methods", "yardstick", "mean", "alpha_min", "upload", "version"}
    about = running.client.get("/api/domains").json()
    assert set(about) == names
    for told, (name, domain) in zip(about["domains"], DOMAINS.items(), strict=True):
        assert (told["name"], tuple(told["parts"])) == (name, domain.parts)
        taken = {parameter["name"]: parameter["default"] for parameter in told["parameters"]}
        known = {key: each.default for key, each in domain.parameters.items() if key != "traffic"}  # no files
        assert taken == known
    assert [told["name"] for told in about["methods"]] == [name for name, each in METHODS.items() if each.shown]
    assert [told["name"] for told in about["methods"] if told["slow"]] == ["cvar-ev", "cvar-wc"]
    for told in about["methods"]:
        assert told["table"] == (get("decisions.csv", "figure-2", alpha=0.1, method=told["name"]).status_code == 200)
    assert {about["yardstick"], about["mean"]} <= {told["name"] for told in about["methods"]}


LEARNED = [
    {"state": "s", "action": action, "next_state": "g", "cost": cost, "n": n}
    for action, seen in {"a": [(2, 40), (9, 3)], "b": [(3, 20), (7, 1), (10, 1)]}.items()
    for cost, n in seen
]


def test_a_learned_model_is_planned_for_with_a_confidence(running, get, tmp_path):
    path = tmp_path / "learned.json"
    prudent.save(prudent.from_episodes(LEARNED, count="n", initial="s").model, path)
    found = running.client.post("/api/models", params={"name": path.name}, content=path.read_bytes()).json()
    assert (found["check"]["counts"], found["check"]["intervals"]) == (True, False)
    asked = {"alpha": 0.3, "uncertainty": 0.9}
    theirs = printed("solve", path, "--alpha", 0.3, "--uncertainty", 0.9)
    ours = get("solve", found["model"], **asked).json()
    ours["plan"].pop("seconds")
    assert ours["plan"] == theirs
    assert ours["own"] == theirs["nominal"]
    assert theirs["cvar"] <= float(ours["shown"]["cvar"]) < theirs["cvar"] + 1e-6  # at most that
    assert get("solve", found["model"], alpha=0.3).json()["plan"]["cvar"] < theirs["cvar"]
    other = get("solve", found["model"], method="expected", **asked).json()
    assert "nominal" not in other["plan"]
    point = next(each for each in get("curve", found["model"], uncertainty=0.9).json()["points"] if each["alpha"] == 1)
    assert point["cvar"] == pytest.approx(prudent.solve(prudent.load(path), 1.0, uncertainty=0.9).cvar)
    run = get("play", found["model"], run=1, **asked).json()
    assert run["expected"] == pytest.approx(theirs["nominal"]["expected"])
    assert sum(step["luck"] for step in run["steps"]) == pytest.approx(run["expected"] - run["total"])
    bad = get("solve", found["model"], alpha=0.3, uncertainty="much")
    assert (bad.status_code, "uncertainty is 'much'" in bad.json()["error"]) == (400, True)
