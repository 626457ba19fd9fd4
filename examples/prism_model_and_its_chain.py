"""A PRISM model solved here, and the plan handed back to Storm as a Markov chain.

Run it where ``packets.prism`` is; it writes ``chain.drn`` beside it.
"""

import stormpy

import prudent

model = prudent.load("packets.prism", constants={"N": 3})
plan = prudent.solve(model, alpha=0.1)
print(model)
print(f"{plan.status}: CVaR {plan.cvar:.4f}, mean {plan.expected:.4f}")

prudent.save(plan.chain(), "chain.drn")  # or chain.umb, which PRISM and Modest read, too
chain = stormpy.build_model_from_drn("chain.drn")
(asked,) = stormpy.parse_properties('R{"cost"}=? [F "goal"]')
told = stormpy.model_checking(chain, asked).get_value(chain.initial_states[0])
print(f"Storm on the chain of {chain.nr_states} states: mean {told:.4f}")
