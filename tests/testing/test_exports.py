"""The public names of `trimtab.testing` are these, and each is documented."""

import trimtab.testing


def test_the_export_list_is_what_it_is() -> None:
    assert trimtab.testing.__all__ == [
        "AssetsMissing",
        "Cluster",
        "ClusterError",
        "Kind",
        "KubectlFailed",
        "Options",
        "Rehearsal",
        "Running",
        "Token",
        "cluster",
        "eventually",
        "install",
        "rehearse",
        "running",
        "virtual_time",
    ]


def test_every_public_class_and_function_says_what_it_is() -> None:
    for name in trimtab.testing.__all__:
        value = getattr(trimtab.testing, name)
        assert name == "Kind" or value.__doc__, name
