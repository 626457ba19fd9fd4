"""A study and simulated runs on the processes of an MPI job."""

import prudent


def main():
    """Solve every combination on the workers, then simulate a plan."""
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as executor:
        study = prudent.study(
            "inventory-control",
            {"capacity": [10, 20], "demand": [5, 10]},
            alphas=[0.02, 0.2],
            executor=executor,
            keep="study.jsonl",
        )
        model = prudent.domains.inventory_control(capacity=10)
        plan = prudent.solve(model, alpha=0.02)
        runs = prudent.simulate(model, plan.policy, episodes=1_000_000, executor=executor)
    for row in study.rows:
        print(row["capacity"], row["demand"], row["alpha"], f"{row['cvar']:.3f}")
    print(f"simulated: {runs.cvar(0.02):.3f} ± {runs.cvar_se(0.02):.3f}")


if __name__ == "__main__":
    main()
