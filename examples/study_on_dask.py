"""A study on a Dask cluster: here two local processes; any other cluster works the same way."""

import prudent


def main():
    """Solve every combination on the workers."""
    from dask.distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:  # or Client("tcp://scheduler:8786")
        study = prudent.study(
            "inventory-control",
            {"capacity": [10, 20], "demand": [5, 10]},
            alphas=[0.02, 0.2],
            executor=client.get_executor(),
            keep="study.jsonl",
        )
    for row in study.rows:
        print(row["capacity"], row["demand"], row["alpha"], f"{row['cvar']:.3f}")


if __name__ == "__main__":
    main()
