"""A Gymnasium agent: a plan made from an environment's table of transitions, and runs of it."""

import gymnasium

import prudent

env = gymnasium.make("CliffWalking-v1", is_slippery=True, max_episode_steps=-1)
model = prudent.from_gymnasium(env)  # the cost is minus the reward
plan = prudent.solve(model, alpha=0.1)
print(f"{plan.status}: CVaR {plan.cvar:.2f}, expected cost {plan.expected:.2f}")

agent = prudent.gymnasium_agent(plan, env)
total, runs = 0.0, 200
for seed in range(runs):
    agent.start(env.reset(seed=seed)[0])
    while not agent.done:
        agent.observe(*env.step(agent.action))
    total += agent.spent
print(f"{runs} runs in the environment: sample mean {total / runs:.2f}")
