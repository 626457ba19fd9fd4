"""A PRISM model solved here, and the plan handed back to Storm as a Markov chain, to ask it anything else."""

import tempfile
from pathlib import Path

import stormpy

import prudent

model = prudent.load(Path(__file__).with_name("packets.prism"), constants={"N": 3})
plan = prudent.solve(model, alpha=0.1)
print(f"{model}")
print(f"{plan.status}: CVaR {plan.cvar:.4f}, mean {plan.expected:.4f}")

with tempfile.TemporaryDirectory() as folder:
    for suffix in ("umb", "drn"):
        prudent.save(plan.chain(), Path(folder) / f"chain.{suffix}")
    again = prudent.load(Path(folder) / "chain.umb")
    chain = stormpy.build_model_from_drn(str(Path(folder) / "chain.drn"))

(asked,) = stormpy.parse_properties('R{"cost"}=? [F "goal"]')
told = stormpy.model_checking(chain, asked).get_value(chain.initial_states[0])
print(f"Storm on the chain of {again.n_states} states: mean {told:.4f}")
