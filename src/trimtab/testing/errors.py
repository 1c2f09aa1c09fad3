"""What can go wrong while a test gets a cluster."""


class ClusterError(Exception):
    """A test cluster could not be found, started or asked; the text says why.

    Not a `TrimtabError`, whose module brings the whole client along: pytest loads the
    plugin, and this with it, in every run of every project that has Trimtab installed.
    """


class AssetsMissing(ClusterError):
    """A program of the control plane is not on this machine."""


class KubectlFailed(ClusterError):
    """kubectl ended with an error, or not in time; `stderr` is what it said."""

    def __init__(self, message: str, *, stderr: str = "") -> None:
        super().__init__(message)
        self.stderr = stderr
