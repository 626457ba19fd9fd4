"""Solve a PRISM model, and pass the plan back to Storm as a Markov chain.

Run it in the folder of ``packets.prism``; it writes ``chain.drn`` there.
"""

import stormpy

import prudent

model = prudent.load("packets.prism", constants={"N": 3})
plan = prudent.solve(model, alpha=0.1)
print(model)
print(f"{plan.status}: CVaR {plan.cvar:.4f}, expected cost {plan.expected:.4f}")

prudent.save(plan.chain(), "chain.drn")  # or chain.umb, which PRISM and Modest read as well
chain = stormpy.build_model_from_drn("chain.drn")
(question,) = stormpy.parse_properties('R{"cost"}=? [F "goal"]')
answer = stormpy.model_checking(chain, question).get_value(chain.initial_states[0])
print(f"Storm on the chain of {chain.nr_states} states: expected cost {answer:.4f}")
