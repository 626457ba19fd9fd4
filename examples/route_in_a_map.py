"""A route through a networkx map: fast roads that may jam, and streets that do not."""

import networkx

import prudent

roads = networkx.DiGraph()
roads.add_edge("home", "bridge", time={6: 0.8, 15: 0.2})  # minutes: probability
roads.add_edge("home", "park", time=14)
roads.add_edge("park", "bridge", time=4)
roads.add_edge("bridge", "airport", time={10: 0.95, 40: 0.05})
roads.add_edge("bridge", "tunnel", time=5)
roads.add_edge("tunnel", "airport", time={12: 0.5, 16: 0.5})
model = prudent.from_networkx(roads, "home", "airport")

for alpha in (1, 0.1):
    plan = prudent.solve(model, alpha)
    print(f"alpha {alpha:g}: CVaR {plan.cvar:.1f} minutes, expected cost {plan.expected:.2f}")
    print(f"  at home: to the {plan.policy('home')}")
    for minutes in (6, 15):
        print(f"  at the bridge after {minutes}: to the {plan.policy('bridge', minutes)}")
